"""Batches are cut by bytes before they are packed: the bound must hold for whatever is packed."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.adapters.dns_update import pack_update
from fencepost.core.fence import Generation, Hold, Marker
from fencepost.core.record_set import Content, content
from fencepost.core.traffic.room import wire_size
from fencepost.core.zone import Change, Live

ADDRESSES = st.dictionaries(
    st.one_of(st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map(str)), st.integers(1, 255), max_size=60
)
HOLDS = st.none() | st.just(Hold("repair", 1_790_000_000, 1_790_003_600))


def live(name: str, weights: dict[str, int], hold: Hold | None, *, emptied: bool, marked: bool) -> Live:
    """An endpoint as it may stand, also with its records emptied beside a marker that carries them."""
    value = content(weights, 30)
    marker = Marker.of("eu-1", "ab12", Generation(1_790_000_000, 999_999), value, hold, 12) if marked else None
    shown = Content() if emptied else value
    return Live(name, marker, shown.a, shown.aaaa, 30)


@settings(max_examples=150, deadline=None)
@given(ADDRESSES, ADDRESSES, HOLDS, HOLDS, st.booleans(), st.booleans(), st.integers(1, 50))
def test_the_size_an_enactor_reckons_with_is_never_below_what_is_sent(
    old: dict[str, int],
    new: dict[str, int],
    was: Hold | None,
    will: Hold | None,
    emptied: bool,
    marked: bool,
    label: int,
) -> None:
    """RFC 2136 over TCP takes 64 KiB: a batch reckoned to fit must fit (RFC 1035 section 4.2.2)."""
    name = f"{'x' * label}.example.test"
    value = content(new, 30)
    marker = Marker.of("eu-1", "ab12", Generation(1_790_000_001, 999_999), value, will, 1)
    change = Change(name, live(name, old, was, emptied=emptied, marked=marked), marker, value, "4")
    header = len(pack_update(1, "example.test", ()))
    assert len(pack_update(1, "example.test", (change,))) - header <= wire_size(change)
