"""Commands while parts of the region are away, starts that clash, and how ``up`` ends."""

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from damage import remembered
from free_ports import free_port
from patience import patient
from regions import FENCEPOST, RunningRegion

from fencepost.roles.status.document import decode

API, WWW = "api.example.test", "www.example.test"


@pytest.fixture(scope="module")
def region(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegion]:
    """One region for the whole file."""
    with RunningRegion(tmp_path_factory.mktemp("outage"), name="outage") as running:
        yield running


def standing(region: RunningRegion, name: str) -> list[str]:
    """The addresses that stand: while one ramps up, an answer is a draw by weight and the marker carries them all."""
    marker = region.marker(name)
    if marker is not None and marker.content is not None:
        return list(marker.content.a)
    return region.addresses(name)


def up(region: RunningRegion, *words: str) -> subprocess.CompletedProcess[str]:
    """``fencepost up`` to its end."""
    command = [str(FENCEPOST), "up", "--config", str(region.config), *words]
    return subprocess.run(
        command,
        cwd=region.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patient(60),
        check=False,
    )


def test_a_second_start_of_a_region_is_refused(region: RunningRegion) -> None:
    """Exit 2 before anything is started, naming the process."""
    done = up(region)
    assert done.returncode == 2
    assert "this region runs already (supervisor pid" in done.stderr
    assert not done.stdout


def test_a_port_that_is_taken_is_named_with_its_process(tmp_path: Path) -> None:
    """Whoever sees "address in use" wants to know by whom."""
    other = RunningRegion(tmp_path, name="taken")
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", other.api_port))
        listening.listen()
        done = up(other, "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert f"127.0.0.1:{other.api_port} is taken, by pid " in error["what"]
    assert not list(tmp_path.glob("*.db"))


def test_an_owner_in_use_on_this_machine_is_refused(region: RunningRegion, tmp_path: Path) -> None:
    """Two regions that write one domain under one owner would adopt over each other for ever (external-dns #2677)."""
    key = f'key = {{ file = "{region.state / "tsig.key"}" }}'
    server = f'provider = "rfc2136"\nserver = "127.0.0.1:{region.dns_port}"\n{key}'

    def edit(text: str) -> str:
        lines = [line for line in text.splitlines() if not line.startswith(("listen = ", "transfer", "provider"))]
        made = "\n".join(lines).replace("[dns]", f"[dns]\n{server}")
        return made.replace("[api]", f'[api]\nlisten = "127.0.0.1:{free_port()}"')

    other = RunningRegion(tmp_path, name="other", owner="outage", edit=edit)
    done = up(other, "--for", "3s")
    assert done.returncode == 2, done.stdout + done.stderr
    assert 'owner "outage" is in use for example.test' in done.stderr


def test_a_store_in_use_on_this_machine_is_refused(region: RunningRegion, tmp_path: Path) -> None:
    """A second region in one store would replace the first one's configuration, and both would write what it asks."""

    store = Path(region.region.store.path)

    def edit(text: str) -> str:
        lines = (f'path = "{store}"' if line.startswith("path =") else line for line in text.splitlines())
        return "\n".join(lines)

    other = RunningRegion(tmp_path, name="third", edit=edit)
    done = up(other, "--for", "3s")
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"the store {store} is another region's already, by {region.config}" in done.stderr


def test_up_for_a_while_as_json_ends_with_the_status_document_alone_on_stdout(tmp_path: Path) -> None:
    """Lines for people go to stderr then; the last says what was promised and held."""
    region = RunningRegion(tmp_path, name="while")
    # Its time runs from its start, and a busy machine takes some of it to have everything up.
    done = up(region, "--sample", "--for", f"{patient(6):.0f}s", "--json")
    assert done.returncode == 0, done.stderr
    status = decode(done.stdout.encode())
    assert (status.region, status.source) == ("while", "api")
    assert [len(endpoint.addresses or ()) for endpoint in status.endpoints] == [6, 6]
    last = done.stderr.splitlines()[-1]
    assert last.startswith("stopped in ")
    assert "promises held" in last
    assert "next: plan" in last


def test_the_look_commands_read_the_store_when_the_api_is_away_and_say_so(region: RunningRegion) -> None:
    """Control plane down: line one says how far down it had to look."""
    pid = region.signal("api", signal.SIGSTOP)
    try:
        said = region.fencepost("status").splitlines()
        assert "the API doesn't answer" in said[0]
        assert any("6 of 6" in line for line in said)
        assert decode(region.fencepost("status", "--json").encode()).source == "store"
        assert "6 in" in region.fencepost("explain", API)
        lose = Path(region.region.store.path)
        away = lose.with_suffix(".away")
        planner = region.signal("planner", signal.SIGSTOP)
        lose.rename(away)
        try:
            said = region.fencepost("status", ok=(0, 1)).splitlines()
            assert "read from the markers in DNS" in said[0]
            status = decode(region.fencepost("status", "--json", ok=(0, 1)).encode())
            assert status.source == "dns"
            assert [len(endpoint.addresses or ()) for endpoint in status.endpoints] == [6, 6]
            assert "the store is away" in region.fencepost("explain", API)
        finally:
            away.rename(lose)
            send(planner, signal.SIGCONT)
    finally:
        send(pid, signal.SIGCONT)


def send(pid: int, number: int) -> None:
    """A signal, if the process still lives."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def test_an_order_that_nobody_can_carry_out_says_that_it_is_pending(region: RunningRegion) -> None:
    """A hold is pending until the marker shows it: the command waits, says so, and exits with 3 in the end."""
    pid = region.signal("planner", signal.SIGSTOP)
    try:
        words = ("withdraw", WWW, "--confirm", WWW, "--reason", "x", "--timeout", "2s", "--json")
        error = json.loads(region.fencepost(*words, ok=(3,)))["error"]
        assert "stands in the store" in error["what"]
        assert "still pending after 2 s" in error["where"]
        assert len(standing(region, WWW)) == 6
    finally:
        send(pid, signal.SIGCONT)
    region.until(lambda: standing(region, WWW) == [], 15, "the planner carries it out once it can")
    region.fencepost("resume", WWW)
    region.until(lambda: len(standing(region, WWW)) == 6, 10, "it is back")


def test_repair_from_memory_puts_back_what_an_enactor_remembers(region: RunningRegion) -> None:
    """Without --address: the newest whole set known on this machine, at the provider within one command."""
    region.until(lambda: len(standing(region, API)) == 6, 10, "published")
    region.until(lambda: remembered(region, API), 10, "and remembered by those who will be stopped")
    roles = ("enactor/a", "enactor/b", "enactor/c", "planner")
    stopped = [region.signal(role, signal.SIGSTOP) for role in roles]
    try:
        region.fencepost("dev", "wipe", API, "--both")
        assert standing(region, API) == []
        region.fencepost("repair", API, "--yes", "--reason", "a drill")
        assert len(standing(region, API)) == 6
    finally:
        for pid in stopped:
            send(pid, signal.SIGCONT)
    region.fencepost("resume", API)
    region.until(lambda: (m := region.marker(API)) is not None and m.hold is None, 10, "released")


def test_a_supervisor_that_is_killed_ends_up_and_exits_1(tmp_path: Path) -> None:
    """A run that lost its supervisor isn't a run; its roles end with it."""
    region = RunningRegion(tmp_path, name="orphan")
    with region:
        held = json.loads((region.state / "processes.json").read_text())
        os.kill(held["supervisor"], signal.SIGKILL)
        assert region.process is not None
        assert region.process.wait(patient(20)) == 1
        pids = [each["pid"] for each in held["processes"].values() if each["pid"]]
        region.until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 10, "the roles end too")
