"""How a role ends: what a port refused is two lines and its own exit code, also out of a task group."""

import contextlib
import logging
import os
from pathlib import Path

import pytest

from fencepost.ports import Misconfigured, PortError, Refused, Unavailable
from fencepost.roles.process import fork, port_error

TAKEN = Misconfigured("the port is taken", where="127.0.0.1:53", hint="ss -lptn")


def ended(error: Exception, folder: Path) -> tuple[int, str]:
    """The exit code and log of a role that ends so."""

    async def main() -> None:
        raise error

    _, status = os.waitpid(fork("dns", main, folder), 0)
    return os.waitstatus_to_exitcode(status), (folder / "dns.log").read_text()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TAKEN, 2),
        (Unavailable("the store doesn't answer"), 3),
        (Refused("the domain has no SOA"), 1),
        (ExceptionGroup("unhandled errors in a TaskGroup", [TAKEN]), 2),
        (ExceptionGroup("one", [ExceptionGroup("two", [Unavailable("gone"), TAKEN])]), 2),
        (ExceptionGroup("one", [Unavailable("gone")]), 3),
        (ExceptionGroup("one", [TAKEN, TypeError("ours")]), 70),
        (TypeError("ours"), 70),
    ],
)
def test_a_role_ends_by_the_kind_of_what_ended_it(error: Exception, code: int, tmp_path: Path) -> None:
    """asyncio.TaskGroup wraps what its tasks raise; a taken port is no defect for that (bind(2), EADDRINUSE)."""
    found, log = ended(error, tmp_path)
    assert found == code
    assert ("Traceback" in log) == (code == 70)
    assert ("a defect" in log) == (code == 70)
    if code == 2:
        first, second = log.splitlines()
        assert first.endswith("dns: 127.0.0.1:53: the port is taken")
        assert second.endswith("  try  ss -lptn")


@pytest.mark.parametrize("error", [TAKEN, TypeError("ours")])
def test_a_role_ends_though_nothing_can_be_written(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """full(4): neither its streams nor its log take a line; the child must still end, and not go on as its parent."""
    (tmp_path / "dns.log").symlink_to("/dev/full")

    async def main() -> None:
        raise error

    full = open("/dev/full", "w")  # noqa: SIM115  its close fails too
    full.write("not yet flushed")
    monkeypatch.setattr("sys.stdout", full)
    monkeypatch.setattr("sys.stderr", full)
    _, status = os.waitpid(fork("dns", main, tmp_path), 0)
    monkeypatch.undo()
    with contextlib.suppress(OSError):
        full.close()
    assert os.waitstatus_to_exitcode(status) == (2 if error is TAKEN else 70)


def test_what_a_person_mends_counts_first() -> None:
    """Two tasks that fail at once: the code names the one that doesn't pass by itself."""
    several: list[PortError] = [Unavailable("gone"), Refused("no"), TAKEN]
    assert port_error(ExceptionGroup("several", several)) is TAKEN
    assert port_error(ExceptionGroup("several", several[:2])) is several[1]


def test_a_role_does_not_make_the_folder_of_its_log(tmp_path: Path) -> None:
    """Its folder is away (unmounted, moved): a role that is started again runs, its lines are lost meanwhile, and the
    first one after the folder is back is kept. Made anew it would be taken for a region whose store was lost."""
    folder, away = tmp_path / ".fencepost" / "demo", tmp_path / "away" / "demo"
    away.mkdir(parents=True)

    async def main() -> None:
        logging.getLogger("fencepost").warning("while it is away")
        assert not folder.parent.exists()
        away.parent.rename(folder.parent)
        raise TAKEN

    _, status = os.waitpid(fork("dns", main, folder), 0)
    assert os.waitstatus_to_exitcode(status) == 2
    log = (folder / "dns.log").read_text()
    assert "the port is taken" in log
    assert "while it is away" not in log
