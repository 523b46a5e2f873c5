"""Small things the core's tests are built from: contents, rows, markers, and hypothesis strategies for them."""

import ipaddress

from hypothesis import strategies as st

from fencepost.core.fence import Generation, Hold, Marker
from fencepost.core.record_set import NOTHING, Content, content
from fencepost.core.store import Row
from fencepost.core.zone import Live

OWNER = "demo"
STORE = "0001"
NAME = "api.example.test"
ONE = content(["192.0.2.1"], 30)
TWO = content(["192.0.2.2"], 30)
BOTH_FAMILIES = content(["192.0.2.1", "2001:db8::1"], 30)


def row(value: Content = ONE, number: int = 1, epoch: int = 0, hold: Hold | None = None, families: str = "4") -> Row:
    """A published row."""
    made = Row.of(NAME, Generation(epoch, number), value, hold, families=families)
    return Row(NAME, made.generation, value, made.digest, families, hold, store=STORE, nonce=f"{STORE}-{number}")


def live(value: Content = ONE, number: int = 1, epoch: int = 0, hold: Hold | None = None, owner: str = OWNER) -> Live:
    """An endpoint as the enactor leaves it after writing that row."""
    marker = Marker.of(owner, STORE, Generation(epoch, number), value, hold, 1)
    return Live(NAME, marker, value.a, value.aaaa, value.ttl)


four = st.integers(0, 2**32 - 1).map(lambda number: str(ipaddress.IPv4Address(number)))
six = st.integers(0, 2**128 - 1).map(lambda number: str(ipaddress.IPv6Address(number)))
weights = st.integers(1, 255)
weighed = st.dictionaries(st.one_of(four, six), weights, min_size=1, max_size=12)
contents = st.builds(content, weighed, st.integers(1, 86_400))
numbers = st.integers(0, 10**18 - 2)
generations = st.builds(Generation, numbers, numbers)
holds = st.builds(Hold, st.sampled_from(["repair", "rollback"]), numbers, numbers)
tombstones = st.builds(
    lambda generation, hold_id, until: Marker.of(
        OWNER, STORE, generation, NOTHING, Hold("withdraw", hold_id, until), 1
    ),
    generations,
    numbers,
    numbers,
)
markers = st.one_of(
    st.builds(
        Marker.of,
        st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,62}", fullmatch=True),
        st.from_regex(r"[0-9a-f]{4}", fullmatch=True),
        generations,
        contents,
        st.none() | holds,
        numbers,
    ),
    tombstones,
)
