"""``fencepost prove`` as a person calls it: on a server, interrupted, refused, and with its server gone."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import dns.message
import dns.opcode
import dns.query
import pytest
from called import FENCEPOST, call
from free_ports import free_port
from relay import Relay
from servers import DOMAIN, KEY_NAME, KEY_SECRET, READER, Served, bind, embedded

NAME = f"fencepost-prove-1.{DOMAIN}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the module."""
    with embedded(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, served: Served) -> Path:
    """A folder with the region.toml of a region on that server, which never ran."""
    return region(tmp_path, served.port)


def region(folder: Path, port: int) -> Path:
    """Write region.toml and its key."""
    (folder / "tsig.key").write_text(f"hmac-sha256:{KEY_NAME}:{KEY_SECRET}")
    (folder / "tsig.key").chmod(0o600)
    (folder / "region.toml").write_text(
        '[region]\nname = "eu-1"\n'
        f'[dns]\nprovider = "rfc2136"\nserver = "127.0.0.1:{port}"\ndomain = "{DOMAIN}"\n'
        'key = { file = "tsig.key" }\n'
        '[pool.api]\nprobe = "http://:8080/healthz"\n[pool.api.targets]\na = ["192.0.2.10"]\n'
        f'[[endpoint]]\nname = "api.{DOMAIN}"\npool = "api"\n'
    )
    return folder


def stands(served: Served, name: str, kind: str = "ANY") -> list[str]:
    """What the server answers for a name."""
    answer = dns.query.udp(dns.message.make_query(name, kind), "127.0.0.1", 5, served.port)
    return [rrset.to_text() for rrset in answer.answer]


def nothing_left(served: Served) -> bool:
    """Whether both scratch names are gone, markers included."""
    names = (NAME, f"_fencepost.{NAME}", NAME.replace("-1.", "-1-b."), f"_fencepost.{NAME.replace('-1.', '-1-b.')}")
    return not any(stands(served, name, kind) for name in names for kind in ("A", "TXT"))


def test_held_with_a_report(folder: Path, served: Served) -> None:
    """Exit 0: what it will do, each refusal as received, the verdict, a page; and nothing is left."""
    done = call("prove", "--name", NAME, "--yes", "--report", "races.md", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert f"RFC 2136 at 127.0.0.1:{served.port} · {DOMAIN}: 8 races at {NAME}" in done.stderr
    assert "held      a stale writer" in done.stderr
    assert "           NXRRSET" in done.stderr
    assert done.stdout.startswith("held here: 8 of 8")
    assert f"nothing stands at {NAME}" in done.stdout
    assert "| a second creator |" in (folder / "races.md").read_text()
    assert nothing_left(served)


def test_document(folder: Path, served: Served) -> None:
    """--json: one document, with a drawn name."""
    done = call("prove", "--yes", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "fencepost.prove/1"
    assert document["held"] is True
    assert document["remains"] == []
    assert document["name"].startswith("fencepost-prove-")
    assert {race["said"] for race in document["races"]} >= {"YXRRSET", "NXRRSET"}


def test_roles_of_one_host_do_not_answer_for_the_provider(tmp_path: Path) -> None:
    """On Route 53 roles of a host tell each other of writes; here each writer is alone, so AWS itself refuses."""
    from route53_stage import ENVIRONMENT

    from fencepost.dev.route53 import Route53Settings, running

    region(tmp_path, 1)
    with running(Route53Settings(requests_per_s=None, zones=(DOMAIN,))) as server:
        text = (tmp_path / "region.toml").read_text()
        lines = [line for line in text.splitlines() if not line.startswith(("server", "key"))]
        text = "\n".join(lines).replace('"rfc2136"', f'"route53"\nendpoint = "{server.url}"\nrequests = "500/s"')
        (tmp_path / "region.toml").write_text(text)
        done = call("prove", "--yes", "--json", cwd=tmp_path, **{k: v for k, v in ENVIRONMENT.items() if v})
        assert done.returncode == 0, done.stderr + done.stdout
        said = [race["said"] for race in json.loads(done.stdout)["races"]]
        assert all("Tried to" in words for words in said[:-1])
        calls = server.calls.count("ChangeResourceRecordSets")
        assert 12 <= calls <= 22


def test_a_report_that_can_not_be_written_hides_nothing(folder: Path, served: Served) -> None:
    """On a full disk (Linux: /dev/full) the verdict and what remains are said all the same; exit 74, no traceback."""
    done = call("prove", "--name", NAME, "--yes", "--report", "/dev/full", cwd=folder)
    assert done.returncode == 74, done.stderr
    assert done.stdout.startswith("held here: 8 of 8")
    assert "--report /dev/full can't be written: no space left on device" in done.stderr
    assert nothing_left(served)


@contextmanager
def slow_after(served: Served, quick: int, hurry: threading.Event) -> Iterator[int]:
    """A way to the server that keeps answers to writes back for a second, but the first ones, until ``hurry``."""
    relay, loop, writes = Relay(served.port), asyncio.new_event_loop(), count()
    ready, stop = threading.Event(), asyncio.Event()

    def delay_s(answer: bytes) -> float:
        is_write = answer[2] >> 3 & 15 == dns.opcode.UPDATE
        return 1.0 if is_write and next(writes) >= quick and not hurry.is_set() else 0.0

    async def serve() -> None:
        relay.delay_s = delay_s
        await relay.start()
        ready.set()
        await stop.wait()
        await relay.stop()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield relay.port
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted(tmp_path: Path, served: Served, how: signal.Signals) -> None:
    """Ctrl-C, TERM, a lost terminal midway: 130, the result so far, and both names are removed all the same."""
    hurry = threading.Event()
    with slow_after(served, 2, hurry) as port:
        out, said = interrupted(region(tmp_path, port), how, hurry)
    assert "interrupted: removing what was written" in said
    assert "unfinished" in out
    assert nothing_left(served)


def interrupted(folder: Path, how: signal.Signals, hurry: threading.Event) -> tuple[str, str]:
    """What a run says that is sent a signal once its first race is over."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")}
    words = [str(FENCEPOST), "prove", "--name", NAME, "--yes"]
    running = subprocess.Popen(
        words,
        cwd=folder,
        env=clean,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    while "a second creator" not in running.stderr.readline():
        assert running.poll() is None
    running.send_signal(how)
    hurry.set()
    out, said = running.communicate(timeout=30)
    assert running.returncode == 130, (out, said)
    return out, said


def test_asks_first(folder: Path, served: Served, tmp_path: Path) -> None:
    """Nobody is there to say yes: exit 2, what it would do, nothing written, no record of a run under way either."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = call("prove", "--name", NAME, cwd=folder, TMPDIR=str(temporary))
    assert done.returncode == 2
    assert list(temporary.iterdir()) == []
    assert "half of them to be refused" in done.stderr
    assert "add --yes" in done.stderr
    assert nothing_left(served)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--name", f"api.{DOMAIN}"), 'must begin with "fencepost-prove-"'),
        (("--name", "fencepost-prove-1.example.org"), "is in no domain of this region"),
        (("--clean",), "--clean needs the name"),
        (("--report", "nowhere/x.md"), "its folder is not there"),
        (("--name", "fencepost-prove-1..x"), "empty label"),
    ],
)
def test_usage(folder: Path, words: tuple[str, ...], said: str) -> None:
    """What can't be meant is refused before anything is asked or written."""
    done = call("prove", "--yes", *words, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr


def test_used_name_and_clean(folder: Path, served: Served) -> None:
    """What an earlier run left is refused as used, and --clean takes it away; another's is left (exit 1)."""
    from dns.tsigkeyring import from_text
    from dns.update import UpdateMessage

    def put(address: str) -> None:
        update = UpdateMessage(DOMAIN, keyring=from_text({KEY_NAME: KEY_SECRET}))
        update.replace(f"{NAME}.", 30, "A", address)
        dns.query.tcp(update, "127.0.0.1", 5, served.port)

    put("192.0.2.77")
    done = call("prove", "--name", NAME, "--yes", cwd=folder)
    assert done.returncode == 1
    assert "records stand at this name already" in done.stderr
    assert stands(served, NAME, "A")
    done = call("prove", "--clean", "--name", NAME, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert nothing_left(served)
    put("198.51.100.7")
    done = call("prove", "--clean", "--name", NAME, "--json", cwd=folder)
    assert done.returncode == 1
    assert json.loads(done.stdout)["remains"] == [f"{NAME}: A 198.51.100.7 (not what a race wrote)"]
    assert stands(served, NAME, "A")


def test_no_right_to_write(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A key that may read and not write there: exit 2, nothing remains, and which rights a run needs."""
    with bind(tmp_path_factory.mktemp("bind")) as named:
        folder = region(tmp_path, named.port)
        (folder / "tsig.key").write_text(f"hmac-sha256:{READER}:{KEY_SECRET}")
        done = call("prove", "--yes", cwd=folder)
    assert done.returncode == 2
    assert "REFUSED" in done.stderr
    assert "may write in the whole domain" in done.stderr
    assert "remains" not in done.stderr


def test_no_server(tmp_path: Path) -> None:
    """Nobody answers: exit 3, and no word about races or remains."""
    done = call("prove", "--yes", "--json", cwd=region(tmp_path, free_port()))
    assert done.returncode == 3
    document = json.loads(done.stdout)
    assert document["error"]["kind"] == "unavailable"
    assert document["held"] is None
    assert document["remains"] == []


def test_no_answer_in_time(tmp_path: Path) -> None:
    """A server that takes the connection and says nothing: exit 3 within --timeout."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = call("prove", "--yes", "--timeout", "500ms", cwd=region(tmp_path, silent.getsockname()[1]))
    assert done.returncode == 3
    assert "no answer within" in done.stderr
