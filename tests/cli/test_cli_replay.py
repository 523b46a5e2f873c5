"""``fencepost replay`` as people call it: what it prints, what it refuses, and its exit codes."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from called import FENCEPOST, call

from fencepost.cli import replay as command
from fencepost.incident.replay.guards import PRODUCTION
from fencepost.incident.replay.options import Options


def test_a_replay_is_told_and_given_as_a_document(tmp_path: Path) -> None:
    """Phases, events and figures by name, beside what was reported."""
    told = call("replay", "--hosts", "1000", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("October 2025 as it was")
    assert "lease storm" in told.stdout
    done = call("replay", "--hosts", "1000", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert [phase["name"] for phase in document["phases"]][2] == "lease-storm"
    assert {"name", "reported", "simulated", "kind"} <= document["events"][0].keys()
    assert document["figures"]["dns_empty_s"] > 9_000


def test_page_and_picture_are_written_beside_it(tmp_path: Path) -> None:
    """And said on the other stream."""
    done = call("replay", "--hosts", "200", "--html", "page.html", "--png", "story.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.html").read_text().lower().startswith("<!doctype html>")
    assert (tmp_path / "story.png").read_bytes().startswith(b"\x89PNG")
    assert done.stderr.count("written: ") == 2


def test_values_are_listed_with_their_kinds(tmp_path: Path) -> None:
    """Published, estimate, calibrated."""
    done = call("replay", "--values", "--set", "leases.length=200s", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(kind in done.stdout for kind in ("published", "estimate", "calibrated"))
    assert "set by hand" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--guards", "fense"), '"fense" is no guard'),
        (("--without", "dns"), 'only "operators" can'),
        (("--dns-outage", "soon"), '"soon" is no duration'),
        (("--dns-outage", "0m"), "no time at all"),
        (("--dns-outage", "9999999h"), "is longer than what is replayed"),
        (("--robust", "100001"), "100,001 draws"),
        (("--hosts", "5"), "100 to "),
        (("--hosts", "10000000"), "100 to 5,000,000"),
        (("--ablate", "--hosts", "1000000"), "at most 200,000 with --ablate: all rates scale"),
        (("--seed", "-1"), "below 0"),
        (("--set", "leases.lenght=200s"), "leases.length"),
        (("--set", "nonsense"), "write it like"),
        (("--map", "--ablate"), "two answers"),
        (("--robust", "2", "--html", "x.html"), "no page"),
        (("--html", "same", "--png", "same"), "one file"),
        (("octobre",), "octobre"),
        (("bad-probe", "--dns-outage", "1h"), "never away"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_do(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """Exit 2, one error, nothing written."""
    done = call("replay", *words, cwd=tmp_path)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_how_long_many_hosts_take_is_said_before(capsys: pytest.CaptureFixture[str]) -> None:
    """Before, not after minutes of silence; and that it isn't worth it."""
    command._check_size(Options(hosts=command.HOSTS_LONG), command.ONE)
    assert "about 4 s and 105 MB; 100,000 hosts show the same" in capsys.readouterr().err
    command._check_size(Options(hosts=100_000), command.ONE)
    assert capsys.readouterr().err == ""
    assert command.cost(Options(hosts=5_000_000, guards=PRODUCTION))[0] > 60


def test_ctrl_c_ends_an_ablation_and_all_of_its_processes(tmp_path: Path) -> None:
    """Exit 130 at once: nobody waits for the replays under way."""
    with subprocess.Popen(
        [str(FENCEPOST), "replay", "--ablate", "--hosts", "31000"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            while not children(process.pid):
                time.sleep(0.05)
            workers = children(process.pid)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130
    limit = time.monotonic() + 20
    while [pid for pid in workers if Path(f"/proc/{pid}").exists()]:  # killed with their parent, gone a moment later
        assert time.monotonic() < limit
        time.sleep(0.01)


def children(pid: int) -> list[int]:
    """A process's own."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
