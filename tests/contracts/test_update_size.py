"""Batches are cut by bytes before they are packed: the bound must hold for whatever is packed."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fencepost.adapters.dns_update import pack_update
from fencepost.core.fence import Generation, Hold, Marker
from fencepost.core.record_set import Content, content
from fencepost.core.service import hosts_of, service_of
from fencepost.core.traffic.room import wire_size
from fencepost.core.zone import Change, Live

SERVICES = st.sampled_from(("", "", "_http._tcp", "_xmpp-client._sctp"))
ADDRESSES = st.dictionaries(
    st.one_of(st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map(str)), st.integers(1, 255), max_size=60
)
ONE = {"192.0.2.1": 1}
HOLDS = st.none() | st.just(Hold("repair", 1_790_000_000, 1_790_003_600))


def live(name: str, weights: dict[str, int], hold: Hold | None, service: str, *, emptied: bool, marked: bool) -> Live:
    """An endpoint as it may stand, also with its records emptied beside a marker that carries them."""
    value = content(weights, 30, service, {text: 80 + weight for text, weight in weights.items()})
    marker = Marker.of("eu-1", "ab12", Generation(1_790_000_000, 999_999), value, hold, 12) if marked else None
    shown = Content() if emptied else value
    stands = service_of(name, value)
    beside = (stands,) if stands is not None and not emptied else ()
    return Live(name, marker, shown.a, shown.aaaa, 30, (), beside, hosts_of(shown))


def changes_before() -> tuple[Change, ...]:
    """So many that what follows lies past the 16 KiB in which a name can be pointed at (RFC 1035 section 4.1.4)."""
    names = [f"e{at}.{'.'.join(['y' * 50] * 4)}.example.test" for at in range(80)]
    value = content(["192.0.2.1"], 30)
    marker = Marker.of("eu-1", "ab12", Generation(0, 1), value, None, 1)
    return tuple(Change(name, Live(name), marker, value, "4") for name in names)


BEFORE = changes_before()


@settings(max_examples=150, deadline=None)
@given(ADDRESSES, ADDRESSES, HOLDS, HOLDS, st.booleans(), st.booleans(), st.integers(1, 50), SERVICES, SERVICES)
@example({f"192.0.2.{n}": 1 for n in range(60)}, ONE, None, None, False, True, 1, "", "")
@example({f"2001:db8::{n:x}": 1 for n in range(60)}, ONE, None, None, False, True, 1, "", "")
@example({f"2001:db8::{n:x}": n + 1 for n in range(60)}, ONE, None, None, True, True, 1, "", "")
def test_the_size_an_enactor_reckons_with_is_never_below_what_is_sent(
    old: dict[str, int],
    new: dict[str, int],
    was: Hold | None,
    will: Hold | None,
    emptied: bool,
    marked: bool,
    label: int,
    service: str,
    asked: str,
) -> None:
    """RFC 2136 over TCP takes 64 KiB: a batch reckoned to fit must fit (RFC 1035 section 4.2.2)."""
    name = f"{'x' * label}.example.test"
    value = content(new, 30, asked, 8080)
    marker = Marker.of("eu-1", "ab12", Generation(1_790_000_001, 999_999), value, will, 1)
    change = Change(name, live(name, old, was, service, emptied=emptied, marked=marked), marker, value, "4")
    for before in ((), BEFORE):
        least = len(pack_update(1, "example.test", before))
        assert len(pack_update(1, "example.test", (*before, change))) - least <= wire_size(change)
