"""Removal has limits, whatever the checkers say: real targets, checkers and DNS."""

import signal
from pathlib import Path

from free_ports import free_port
from regions import RunningRegion

from fencepost.core.traffic.membership import Membership, State
from fencepost.ports import StorePort

NAME = "api.example.test"
TARGETS = ("127.0.1.1", "127.0.1.2", "127.0.2.1", "127.0.2.2", "127.0.3.1", "127.0.3.2")


def membership(region: RunningRegion) -> Membership:
    """The pool's row."""
    import msgspec

    async def read(store: StorePort) -> Membership:
        return msgspec.json.decode((await store.membership("web"))[1], type=Membership)

    return region.with_store(read)


def settled(region: RunningRegion) -> bool:
    """Whether the checkers have judged every target healthy."""
    return all(member.healthy for member in membership(region).members)


def test_a_dead_target_leaves_and_comes_back(tmp_path: Path) -> None:
    """Planned, enacted and answered: one target dies, callers stop getting it; it returns when it passes again."""
    with RunningRegion(tmp_path) as region:
        region.until(lambda: settled(region), 15, "all judged healthy")
        pid = region.signal("target/127.0.2.1", signal.SIGSTOP)
        region.until(lambda: region.addresses(NAME) == [a for a in TARGETS if a != "127.0.2.1"], 15, "it is out of DNS")
        region.until(lambda: len(region.addresses("www.example.test")) == 5, 15, "both endpoints share the pool")
        region.signal("target/127.0.2.1", signal.SIGCONT)
        region.until(lambda: len(region.addresses(NAME)) == 6, 60, "it is back")
        assert region.pid("target/127.0.2.1") == pid


def test_all_targets_failing_takes_out_at_most_max_out_and_puts_them_back(tmp_path: Path) -> None:
    """October 2025, the health checkers: when all look sick at once the checks are what is sick (mlab-ns #243)."""
    with RunningRegion(tmp_path) as region:
        region.until(lambda: settled(region), 15, "all judged healthy")
        lowest = 6
        for target in TARGETS:
            region.signal(f"target/{target}", signal.SIGSTOP)

        def panics() -> bool:
            nonlocal lowest
            lowest = min(lowest, len(region.addresses(NAME)) or 6)
            row = membership(region)
            return row.panic and all(member.state in (State.IN, State.KEPT) for member in row.members)

        region.until(panics, 20, "fail open, all kept")
        region.until(lambda: len(region.addresses(NAME)) == 6, 10, "all answered")
        assert lowest >= 4, "max_out is 2 of 6"
        for target in TARGETS:
            region.signal(f"target/{target}", signal.SIGCONT)


def test_checkers_that_are_cut_off_remove_nothing(tmp_path: Path) -> None:
    """A checker that can't reach its canary doesn't vote; with none voting, everything holds (kubernetes #24200)."""
    canary = free_port()

    def edit(text: str) -> str:
        return text + f'\n[checkers]\ncanary = ["tcp://127.0.0.1:{canary}"]\n'

    with RunningRegion(tmp_path, edit=edit) as region:
        # Nobody listens at the canary: every checker is cut off, as far as it can tell.
        for target in TARGETS:
            region.signal(f"target/{target}", signal.SIGSTOP)
        region.until(
            lambda: all(v.state != "ok" for v in membership(region).voters) and len(membership(region).voters) == 3,
            15,
            "no checker votes",
        )
        for _ in range(20):
            assert len(region.addresses(NAME)) == 6
        assert not region.history("removed")
        for target in TARGETS:
            region.signal(f"target/{target}", signal.SIGCONT)
