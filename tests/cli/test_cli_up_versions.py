"""Roles of another version beside a start: `up` refuses them, `run` says so and goes on, and nothing else is taken for
one."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from called import FENCEPOST, call
from free_ports import free_port
from msgspec import structs

from fencepost import __version__, assembly
from fencepost.cli import up_versions
from fencepost.cli.up_versions import be_alone, other_versions, refuse_other_versions, runs
from fencepost.core.instant import MINUTE
from fencepost.ports import Beat, Misconfigured
from fencepost.settings import Region, load

OLD = "0.0.9"
TEXT = """
[region]
name = "eu-1"
[dns]
provider = "embedded"
domain = "example.test"
listen = "127.0.0.1:{dns}"
[api]
listen = "127.0.0.1:{api}"
[pool.api]
probe = "http://:8080/healthz"
[pool.api.targets]
a = ["192.0.2.10", "192.0.2.11"]
b = ["198.51.100.10", "198.51.100.11"]
[[endpoint]]
name = "api.example.test"
pool = "api"
"""
ROLE = "from fencepost.roles.process import entitle; entitle('{role}'); print(flush=True); input()"


@pytest.fixture
def region(tmp_path: Path) -> Region:
    """A region whose store has been made."""
    path = tmp_path / "region.toml"
    path.write_text(TEXT.format(dns=free_port(), api=free_port()))
    made = load(str(path))
    assembly.load_configuration(made)
    return made


@pytest.fixture
def role() -> Iterator[subprocess.Popen[str]]:
    """A process that is called as enactor b's is."""
    words = [sys.executable, "-c", ROLE.format(role="enactor/b")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def beats(region: Region, *given: Beat) -> None:
    """Signs of life reach the store."""

    async def put() -> None:
        store = assembly.open_store(region)
        for beat in given:
            await store.beat(beat)
        await store.close()

    asyncio.run(put())


def sign(role: str = "enactor/b", pid: int = 0, version: str = OLD, age: int = 0) -> Beat:
    """A sign of life, `age` nanoseconds old."""
    return Beat(role, pid or os.getpid(), version, "up", "", time.time_ns() - age)


def ended() -> int:
    """The pid of a process that is gone."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def test_up_refuses_a_running_role_of_another_version(region: Region, role: subprocess.Popen[str]) -> None:
    """Within a version roles understand each other's rows; a forgotten one would go on deciding beside all the new."""
    beats(region, sign(pid=role.pid), sign("planner", version=__version__))
    done = call("up", "--config", region.path, "--for", "1s")
    assert done.returncode == 2
    assert f"enactor/b (pid {role.pid}) of version {OLD} runs already; this is {__version__}" in done.stderr
    assert "systemctl stop fencepost-enactor@b" in done.stderr
    assert "docs/operating/upgrade.md" in done.stderr
    assert not (Path(region.path).parent / "processes.json").exists()


def test_a_role_that_was_stopped_in_mid_air_is_seen_by_its_process(region: Region, role: subprocess.Popen[str]) -> None:
    """October 2025's enactor slept and woke: no sign of life for an hour, and its process still there."""
    beats(region, sign(pid=role.pid, age=60 * MINUTE))
    with pytest.raises(Misconfigured, match=f"pid {role.pid}"):
        refuse_other_versions(region)


def test_what_runs_no_more_is_in_nobodys_way(region: Region) -> None:
    """After an upgrade the old roles' signs are still in the store: old, or by processes that are gone."""
    beats(region, sign("enactor/a", ended()), sign("enactor/b", ended(), age=MINUTE), sign("planner", age=MINUTE))
    assert other_versions(region) == ()
    refuse_other_versions(region)


def test_many_are_counted_and_the_first_named(region: Region) -> None:
    """A whole region under systemd, say."""
    beats(region, *(sign(f"checker/{zone}") for zone in "abcde"))
    with pytest.raises(Misconfigured, match=r"checker/a \(pid .*checker/c \(pid \d+\) of version 0.0.9 and 2 more run"):
        refuse_other_versions(region)


def test_a_store_that_cannot_be_asked_stops_no_start(region: Region) -> None:
    """Answering and healing need no store."""
    Path(region.store.path).write_bytes(b"no database at all, and long enough to be read as one" * 40)
    assert other_versions(region) == ()
    Path(region.store.path).unlink()
    assert other_versions(region) == ()
    assert not Path(region.store.path).exists()


@pytest.mark.parametrize(("age", "here", "it_runs"), [(0, False, True), (0, True, False), (MINUTE, False, False)])
def test_on_another_machine_a_fresh_sign_is_all_there_is(age: int, here: bool, it_runs: bool) -> None:
    """A store that is a server is shared by machines: that no process here has that pid says nothing."""
    assert runs(sign(pid=ended(), age=age), time.time_ns(), here=here) is it_runs


def test_a_sign_from_elsewhere_is_forgotten_and_that_is_said(region: Region, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade on a shared store, right after the old version was stopped: its last signs are still fresh."""
    shared = structs.replace(region, store=structs.replace(region.store, kind="postgresql"))
    monkeypatch.setattr(up_versions, "signs_of_life", lambda _: (sign(pid=ended()),))
    with pytest.raises(Misconfigured) as refused:
        refuse_other_versions(shared)
    assert refused.value.hint.endswith("one that has ended is forgotten 15 s after its last sign of life")


def test_nothing_else_runs_when_up_forks(region: Region) -> None:
    """A fork copies locks that other threads hold; what was asked of the store before has ended."""
    before = set(threading.enumerate())
    beats(region, sign(version=__version__))
    refuse_other_versions(region)
    assembly.load_configuration(region)
    be_alone()
    assert not [each.name for each in threading.enumerate() if each not in before]


def test_run_says_so_and_goes_on(region: Region, role: subprocess.Popen[str]) -> None:
    """An upgrade role by role, as under systemd, passes through two versions."""
    beats(region, sign(pid=role.pid))
    words = [str(FENCEPOST), "run", "janitor", "--config", region.path]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=Path(region.path).parent) as process:
        assert process.stderr is not None
        said = process.stderr.readline() + process.stderr.readline()
        while "janitor" not in [beat.role for beat in asyncio.run(signs(region))]:
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        assert process.wait(10) == 0
    assert f"enactor/b (pid {role.pid}) of version {OLD} runs already; this is {__version__}" in " ".join(said.split())


async def signs(region: Region) -> list[Beat]:
    """The store's signs of life."""
    store = assembly.open_store(region)
    try:
        return list(await store.beats())
    finally:
        await store.close()
