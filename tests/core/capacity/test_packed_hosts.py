"""Rows kept packed are rows: what is decided by them is what is decided by a dict of them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.messages import Instance, InstanceSet
from fencepost.core.capacity.packed_hosts import PackedHosts
from fencepost.core.capacity.placement import Placement, PlacementSettings
from fencepost.core.capacity.rows import HostRow, InstanceRow, ShardRow

HOSTS = st.builds(
    lambda name, room, ids, word, lease: HostRow(
        name,
        "ab"[ord(name[-1]) % 2],
        "192.0.2.1:7700",
        room,
        number=1,
        lease=lease,
        life="1",
        reported=True,
        set=InstanceSet(len(ids), tuple(Instance(f"{each}.1", "web") for each in ids)),
        word=word,
    ),
    st.sampled_from(["h1", "h2", "h3", "h4"]),
    st.integers(0, 3),
    st.lists(st.sampled_from(["web-1", "web-2", "web-3"]), unique=True, max_size=2),
    st.sampled_from(["", "drain", "cordon"]),
    st.sampled_from(["held", "lapsed"]),
)
INSTANCES = st.builds(
    lambda name, state, host: InstanceRow(name, "web", state, int(state != "waiting"), host),
    st.sampled_from(["web-1", "web-2", "web-3", "web-4"]),
    st.sampled_from(["waiting", "placed", "ending"]),
    st.sampled_from(["h1", "h2"]),
)


class Neighbour:
    """Keeps one of the rows, packed as it likes."""

    def __init__(self, rows: dict[tuple[str, int], bytes]) -> None:
        self.rows = rows

    def name(self, host: str) -> str | None:
        return host if any(host == name for name, _ in self.rows) else None

    def packed(self, host: str, revision: int) -> bytes | None:
        return self.rows.get((host, revision))


@given(
    st.lists(st.tuples(st.one_of(HOSTS, INSTANCES), st.integers(1, 9)), max_size=9, unique_by=lambda each: each[1]),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_packed_rows_decide_alike(rows: list[tuple[HostRow | InstanceRow, int]], shared: bool) -> None:
    """Rows in any order, older ones among them, and what was drafted taken back: after each of two turns."""
    other = PackedHosts()
    for row, revision in rows:
        if isinstance(row, HostRow):
            other[row.host] = Versioned(row, revision)
    kept = {(host, at.revision): other.rows[other.numbers[host]] for host, at in other.items()}
    plain = Placement(PlacementSettings(), "1")
    packed = Placement(PlacementSettings(), "1", PackedHosts(Neighbour(kept) if shared else None))
    for each in (plain, packed):
        each.shard(ShardRow(1, 1, open="1"))
    for row, revision in rows:
        for each in (plain, packed):
            (each.host if isinstance(row, HostRow) else each.instance)(Versioned(row, revision))
    for _ in range(2):
        groups = plain.decide(0)
        assert packed.decide(0) == groups
        assert dict(packed.hosts) == dict(plain.hosts)
        assert dict(packed.room.rows) == dict(plain.room.rows)
        assert packed.room.free == plain.room.free
        for each in (plain, packed):
            each.wrote(groups, 10, [True] * len(groups))
