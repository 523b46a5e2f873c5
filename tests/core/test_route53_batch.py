"""A batch of the Route 53 stand-in, without a server: held to a plain model, and to the fenced transaction of core."""

from core_values import OWNER, STORE
from hypothesis import assume, event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.core.fence import Generation, Marker
from fencepost.core.record_set import Content, content
from fencepost.core.zone import Batch, Live, transact
from fencepost.core.zone import Change as CoreChange
from fencepost.dev.route53.batch import Sets, apply
from fencepost.dev.route53.names import canonical, order
from fencepost.dev.route53.record_set import Change, Key, RecordSet

ZONE = "example.test."
NAMES = (f"a.{ZONE}", f"b.{ZONE}")
Plain = dict[tuple[str, str, str], RecordSet]
"""The model: every record set of a zone in one dict, by name, type and identifier."""


def plain(standing: Plain, batch: list[Change]) -> Plain | None:
    """What the batch comes to by the rules, said the short way: None if any of it may not be."""
    after, order_of = dict(standing), dict[tuple[str, str, str], str]()
    for change in batch:
        wanted = change.record_set
        key = (wanted.name, *wanted.key)
        order_of[key] = order_of.get(key, "") + change.action[0]
        if change.action == "DELETE":
            live = after.pop(key, None)
            if live is None or replace(live, values=()) != replace(wanted, values=()):
                return None
            if set(live.values) != set(wanted.values):
                return None
            continue
        if change.action == "CREATE" and key in after:
            return None
        after[key] = wanted
        at_name = [each for each in after.values() if each.name == wanted.name]
        same = [each for each in at_name if each.type == wanted.type]
        kinds = {each.type for each in at_name}
        mixed = len(same) > 1 and len({each.set_identifier is None for each in same}) > 1
        if ("CNAME" in kinds and len(kinds) > 1) or mixed or len({each.ttl for each in same}) > 1:
            return None
    return None if any(len(actions) > 1 and actions != "DC" for actions in order_of.values()) else after


def by_name(standing: Plain) -> Sets:
    """The model's records as the stand-in keeps them."""
    found: dict[str, dict[Key, RecordSet]] = {}
    for each in standing.values():
        found.setdefault(each.name, {})[each.key] = each
    return found


simple = st.builds(
    lambda name, kind, ttl, values: RecordSet(name=name, type=kind, ttl=ttl, values=tuple(values)),
    st.sampled_from(NAMES),
    st.sampled_from(("A", "A", "TXT", "CNAME")),
    st.sampled_from((60, 60, 61)),
    st.lists(st.sampled_from(("1", "2", "3")), min_size=1, max_size=3, unique=True),
)
weighted = st.builds(
    lambda each, identifier, weight: replace(each, set_identifier=identifier, weight=weight),
    simple,
    st.sampled_from(("x", "y")),
    st.sampled_from((0, 1)),
)


@st.composite
def changes(draw: st.DrawFn, standing: Plain) -> Change:
    """A change; a DELETE or an UPSERT is often of what stands, now and then with its values in another order."""
    action = draw(st.sampled_from(("CREATE", "DELETE", "UPSERT")))
    wanted = draw(st.one_of(simple, weighted))
    if standing and action != "CREATE" and draw(st.integers(0, 3)):
        wanted = draw(st.sampled_from(sorted(standing.values(), key=repr)))
        wanted = replace(wanted, values=tuple(draw(st.permutations(wanted.values))))
    return Change(action, wanted)


@given(st.data())
def test_batches_come_to_what_a_plain_model_says(data: st.DataObject) -> None:
    """Done or refused alike, and the same records afterwards (API reference, ChangeResourceRecordSets)."""
    standing: Plain = {}
    for _ in range(data.draw(st.integers(1, 8))):
        batch = data.draw(st.lists(changes(standing), min_size=1, max_size=3))
        wanted = plain(standing, batch)
        live = by_name(standing)
        found = apply(ZONE, "Z1", live, len(standing), batch)
        event("refused" if wanted is None else "done")
        assert (not found.refusals) == (wanted is not None), found.refusals
        if wanted is None:
            assert not found.names
            continue
        after = {**live, **found.names}
        assert {name: sets for name, sets in after.items() if sets} == by_name(wanted)
        standing = wanted


TTL_S = 30
ENDPOINTS = ("a.example.test", "b.example.test")


def sets_of(live: Live) -> dict[tuple[str, str], RecordSet]:
    """An endpoint's record sets: its addresses, and its marker beside it. TTLs are equal: core compares none."""
    marker = f"_fencepost.{live.name}."
    every = {(f"{live.name}.", "A"): live.a, (f"{live.name}.", "AAAA"): live.aaaa}
    every[marker, "TXT"] = (
        () if not isinstance(live.marker, Marker) else tuple(f'"{string.decode()}"' for string in live.marker.encode())
    )
    return {
        (name, kind): RecordSet(name=name, type=kind, ttl=TTL_S, values=values)
        for (name, kind), values in every.items()
        if values
    }


def fenced(batch: Batch) -> list[Change]:
    """A fenced write as Route 53 takes it: what was seen is deleted, exactly, and what is wanted created."""
    found = []
    for change in batch:
        wanted = Live(change.name, change.marker, change.content.a, change.content.aaaa)
        found += [Change("DELETE", each) for each in sets_of(change.seen).values()]
        found += [Change("CREATE", each) for each in sets_of(wanted).values()]
    return found


few = st.lists(st.sampled_from(("192.0.2.1", "192.0.2.2", "2001:db8::1")), max_size=2).map(
    lambda addresses: content(addresses, TTL_S)
)
lives = st.builds(
    lambda name, number, value: Live(name, marker_of(number, value) if number else None, value.a, value.aaaa),
    st.sampled_from(ENDPOINTS),
    st.integers(0, 2),
    few,
)
several = st.lists(lives, max_size=2, unique_by=lambda live: live.name)
some = st.lists(lives, min_size=1, max_size=2, unique_by=lambda live: live.name)


def marker_of(number: int, value: Content) -> Marker:
    """The marker of plan `number`."""
    return Marker.of(OWNER, STORE, Generation(0, number), value, None, 1)


def unseen(live: Live, change: CoreChange) -> bool:
    """Whether a family stands that the change neither saw nor writes: this API can't require that none does."""
    seen, wanted = change.seen, change.content
    return bool((live.a and not seen.a and not wanted.a) or (live.aaaa and not seen.aaaa and not wanted.aaaa))


@given(several, some, st.lists(few, min_size=2, max_size=2), st.booleans())
def test_exact_deletes_and_creates_are_the_fenced_transaction(
    standing: list[Live], seen: list[Live], wanted: list[Content], fresh: bool
) -> None:
    """`core.zone.transact` and the batch that stands for it let the same through, and leave the same records."""
    domain = {live.name: live for live in standing}
    if fresh:
        seen = [domain.get(each.name, Live(each.name)) for each in seen]
    batch = tuple(
        CoreChange(each.name, each, marker_of(3, value), value, "4") for each, value in zip(seen, wanted, strict=False)
    )
    assume(not any(unseen(domain.get(change.name, Live(change.name)), change) for change in batch))
    live: dict[str, dict[Key, RecordSet]] = {}
    for each in (each for endpoint in standing for each in sets_of(endpoint).values()):
        live.setdefault(each.name, {})[each.key] = each
    found = apply(ZONE, "Z1", live, 0, fenced(batch))
    replaced = transact(domain, batch)
    event("refused" if replaced is None else "done")
    assert (not found.refusals) == (replaced is not None), found.refusals
    if replaced is None:
        return
    for endpoint in replaced.values():
        left = {**live, **found.names}
        stands = {(name, key[0]): each for name in left for key, each in left[name].items() if endpoint.name in name}
        assert stands == sets_of(endpoint)


names = st.text(st.characters(codec="ascii", exclude_categories=["Cc", "Z"], exclude_characters=".\\"), min_size=1)


@given(st.lists(names.filter(lambda label: len(label) < 20), min_size=1, max_size=5))
def test_a_canonical_name_is_its_own(labels: list[str]) -> None:
    """external-dns #264: read back and sent again it is the same name; the order is that of the labels reversed."""
    name = canonical(".".join(labels))
    assert canonical(name) == name == canonical(".".join(labels).upper())
    assert name.endswith(".")
    assert order(name).split(".")[:-1] == list(reversed(name.split(".")[:-1]))
