"""When a moved instance's old attempt may be stopped: once its successor serves, and it doesn't any more."""

from typing import Any

import msgspec
import pytest

from fencepost.core.capacity import attempts
from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.placement import Placement, PlacementSettings
from fencepost.core.capacity.rows import HostRow, InstanceRow, NetworkRow
from fencepost.core.traffic.membership import Member, Membership, State
from fencepost.roles.fleet.following import serving
from fencepost.roles.fleet.placer import Placer

LIFE = "1"


def host(name: str, *addresses: str) -> HostRow:
    """A held host."""
    return HostRow(name, "a", "h:1", 2, addresses, lease="held", life=LIFE, boot=1, reported=True)


def moved() -> tuple[Placer, InstanceRow]:
    """A placer that knows of an instance which was moved from h1 to h2, its network acknowledged there."""
    nobody: Any = None  # it is only asked what it knows
    placer = Placer(PlacementSettings(), nobody, nobody, nobody)
    placer.placement = Placement(PlacementSettings(), LIFE)
    first, row = attempts.placed(InstanceRow("web-1", "web", port=80), host("h1", "10.0.0.1"), "10.0.0.1")
    second, row = attempts.moved(row, host("h2", "10.0.0.2"), "10.0.0.2")
    ready = NetworkRow(row.id, "h2", 1, "d", 1, "{}", (1, "d", 1, LIFE))
    placer.take_some([Versioned(each, 1) for each in (first, second, row, ready)])
    return placer, row


def pool(*members: tuple[str, str, State]) -> dict[str, tuple[int, bytes]]:
    """The pool's row, of members by address, attempt and state."""
    made = tuple(Member(key, "a", state, source=source) for key, source, state in members)
    return {"web": (1, msgspec.json.encode(Membership("web", members=made)))}


@pytest.mark.parametrize(("old", "new"), [("web-1.1", "web-1.2"), ("", "web-1.2"), ("", "")])
def test_the_old_one_goes_on_until_it_is_out_of_service_itself(old: str, new: str) -> None:
    """Stopped while it is answered it would be a dead address until its probes fail; listed ones have no attempt."""
    placer, row = moved()
    for before, after, may in (
        (State.IN, State.PENDING, False),
        (State.IN, State.IN, False),
        (State.KEPT, State.IN, False),
        (State.DRAINED, State.IN, True),
        (State.OUT, State.IN, True),
        (State.DRAINED, State.PENDING, False),
    ):
        placer.serving = serving(pool(("10.0.0.1", old, before), ("10.0.0.2", new, after)))
        assert placer.is_ready(row.id) is may, (before, after)
    placer.serving = serving(pool(("10.0.0.2", new, State.IN)))
    assert placer.is_ready(row.id), "it has left the pool"
    assert not placer.is_ready("web-1.1"), "nobody asks for the old one"
    placer.network.clear()
    assert not placer.is_ready(row.id), "its network state isn't acknowledged"
