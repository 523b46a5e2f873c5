"""Listing a hosted zone: pages, the rolling scan of a large one, and how many batches a first enactment takes."""

import asyncio
from collections.abc import Iterator

import pytest
from dns_scene import DOMAIN, OWNER, change, marker, standing
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from route53_stage import Route53Stage, server, simple, stage

from fencepost.adapters.dns_route53 import listing, port
from fencepost.adapters.dns_route53.batches import ROOM, exchange_of, refuse_too_big, size_of
from fencepost.adapters.dns_route53.listing import scan_seconds
from fencepost.adapters.dns_route53.mirror import Mirror, Page
from fencepost.adapters.dns_route53.names import endpoint_of, listing_key
from fencepost.adapters.dns_route53.record_sets import RecordSet
from fencepost.core.effects import Commit
from fencepost.core.events import Compared
from fencepost.core.fence import Generation
from fencepost.core.judge import Pair
from fencepost.core.record_set import content
from fencepost.core.store import Row
from fencepost.core.traffic.dns_enactor import DnsEnactor, EnactorSettings
from fencepost.core.traffic.room import Room, load_of
from fencepost.core.zone import Change, Live
from fencepost.dev.route53 import limits
from fencepost.ports import Refused

__all__ = ["server", "stage"]
LIST, WRITE = "ListResourceRecordSets", "ChangeResourceRecordSets"


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven record sets a page, and a zone of more than one is a large one."""
    monkeypatch.setattr(limits, "PAGE_RECORD_SETS_MOST", 7)
    monkeypatch.setattr(listing, "PAGE_SETS", 7)
    monkeypatch.setattr(port, "WHOLE_PAGES_MOST", 1)
    return


def names(count: int) -> list[str]:
    """So many endpoints, among them a wildcard and names that sort around the dot."""
    odd = ["*.example.test", "a-b.example.test", "a.example.test", "1.a.example.test", "example.test"]
    return (odd + [f"n{index:04}.example.test" for index in range(count)])[:count]


def test_every_page_is_read_whatever_a_page_cuts(stage: Route53Stage, small_pages: None) -> None:
    """A name's sets may go on on the next page; one may have more than a page holds."""

    async def act() -> None:
        lives = [standing(name, 1, "192.0.2.1", "2001:db8::1") for name in names(25)]
        many = [simple("m.example.test.", "A", 60, f"192.0.2.{n}", SetIdentifier=f"{n}", Weight=1) for n in range(20)]
        await stage.hand(*lives)
        stage.by_hand.change([], many)
        found = stage.port()
        await found.read()
        assert {live.name: found.live(live.name) for live in lives} == {live.name: live for live in lives}
        assert found.live("m.example.test").other == ("A weighted",)

    stage.run(act)


def test_a_large_zone_is_looked_at_a_page_at_a_time(stage: Route53Stage, small_pages: None) -> None:
    """What others change, make and remove is found within one round, for a page a read."""

    async def act() -> None:
        known = names(30)
        await stage.hand(*(standing(name, 1, "192.0.2.1") for name in known))
        found = stage.port()
        await found.read()
        pages = -(-(2 * len(known) + 2) // 7)
        altered = {known[0]: Live(known[0]), known[7]: standing(known[7], 2, "192.0.2.2"), known[29]: Live(known[29])}
        altered["new.example.test"] = standing("new.example.test", 1, "192.0.2.3")
        await stage.hand(*altered.values())
        stage.server.calls.clear()
        seen: set[str] = set()
        for _ in range(20 * pages):
            if seen == set(altered):
                break
            before = stage.server.calls.count(LIST)
            seen |= set(await found.read())
            assert stage.server.calls.count(LIST) <= before + 2  # two: a wildcard that no page had
            await asyncio.sleep(0.003)
        assert seen == set(altered)
        assert stage.server.calls.count(LIST) <= pages + 3
        assert {name: found.live(name) for name in altered} == altered

    stage.run(act)


def test_where_another_enactor_has_been_the_next_pages_are_read_too(stage: Route53Stage, small_pages: None) -> None:
    """One refused batch, not one for each: the page around it is full of news, so the reading goes on."""

    async def act() -> None:
        known = names(40)
        await stage.hand(*(standing(name, 1, "192.0.2.1") for name in known))
        found = stage.port(look_each=3_600_000_000_000)
        await found.read()
        await stage.hand(*(standing(name, 2, "192.0.2.2") for name in known[5:]))
        assert not await found.commit((change(found.live(known[5]), 2, "192.0.2.3"),))
        assert len(await found.read()) >= 34

    stage.run(act)


def test_how_long_a_listing_takes_is_known() -> None:
    """300 a page, two pages a second: 30,000 endpoints of A and marker take a hundred seconds."""
    assert scan_seconds(214, 2) == 0.5
    assert scan_seconds(60_000, 2) == 100
    assert scan_seconds(60_000, 5) == 40


OWNERS = st.sampled_from(
    [
        "example.test.", "\\052.example.test.", "1.example.test.", "a-b.example.test.", "a.example.test.",
        "1.a.example.test.", "_fencepost.a.example.test.", "b.example.test.", "\\052.b.example.test.",
    ]
)  # fmt: skip


@given(st.sets(OWNERS), st.sets(OWNERS), st.integers(1, 4))
def test_pages_in_turn_make_the_mirror_what_is_listed(before: set[str], after: set[str], per_page: int) -> None:
    """Whatever stood before, a whole round of pages leaves what is listed, wildcards that need a look apart."""
    mirror = Mirror(DOMAIN, OWNER)
    doubtful: set[str] = set()
    for at, owners in ((1, before), (2, after)):
        doubtful.clear()
        order = sorted(owners, key=listing_key)
        starts = ["", *order[per_page::per_page]]
        for index, start in enumerate(starts):
            following = starts[index + 1] if index + 1 < len(starts) else ""
            sets = [
                RecordSet(owner, "A", 60, ("192.0.2.1",))
                for owner in order
                if (
                    listing_key(start) <= listing_key(owner)
                    and (not following or listing_key(owner) < listing_key(following))
                )
                or (not start and owner in order[:per_page])
            ]
            doubtful |= set(mirror.take_page(Page(start, following, at, tuple(sets))))
    stands = {owner for owner in before | after if mirror.sets_at(owner)}
    assert stands - doubtful == after - doubtful
    assert all("\\052" in owner for owner in doubtful)


def test_a_page_asked_for_before_a_write_leaves_it_alone() -> None:
    """The answer may come after the write's, and tell of before it."""
    mirror = Mirror(DOMAIN, OWNER)
    old, new = (RecordSet("a.example.test.", "A", 60, (f"192.0.2.{n}",)) for n in (1, 2))
    mirror.take_page(Page("", "", 10, (old,)))
    mirror.take_writes({"a.example.test.": (new,)}, 20)
    mirror.take_page(Page("", "", 15, (old,)))
    assert mirror.live("a.example.test").a == ("192.0.2.2",)
    mirror.take_page(Page("", "", 25, (old,)))
    assert mirror.live("a.example.test").a == ("192.0.2.1",)
    assert mirror.changed() == ("a.example.test",)
    assert endpoint_of("a.example.test.") == ("a.example.test", False)


SETTINGS = EnactorSettings("enactor/a", OWNER, batch=ROOM.endpoints, room=ROOM)


def batches(rows: list[Row], standing_now: dict[str, Live], settings: EnactorSettings) -> Iterator[tuple[Change, ...]]:
    """The batches in which an enactor writes these rows."""
    enactor, left = DnsEnactor(settings, settings.batch), rows
    while left:
        pairs = tuple(Pair(standing_now.get(row.name, Live(row.name)), row) for row in left[: enactor.limit])
        (commit,) = [each for each in enactor.enact(Compared(pairs)) if isinstance(each, Commit)]
        yield commit.batch
        left = left[len(commit.batch) :]


@pytest.mark.parametrize("count_each", [1, 10], ids=["characters", "records"])
@pytest.mark.parametrize("again", [False, True], ids=["first", "change"])
def test_thirty_thousand_endpoints_take_hardly_more_batches_than_they_must(again: bool, count_each: int) -> None:
    """1,000 records and 32,000 characters a batch (DNSControl #1114, #908): within a tenth of the least."""
    mirror, stood = Mirror(DOMAIN, OWNER), content([f"198.51.100.{n}" for n in range(count_each)], 30)
    value = content([f"203.0.113.{n}" for n in range(100, 100 + count_each)], 30)
    rows = [Row.of(f"n{n:05}.example.test", Generation(0, 2), value, families="4") for n in range(30_000)]
    rows = [structs.replace(row, store="ab12", nonce="n") for row in rows]
    lives = {row.name: Live(row.name, marker(1, stood), stood.a, (), 30) for row in rows} if again else {}
    records = characters = count = 0
    for batch in batches(rows, lives, SETTINGS):
        size = size_of(exchange_of(each, mirror, weighted=False) for each in batch)
        assert size[0] <= ROOM.records
        assert size[1] <= ROOM.characters
        records, characters, count = records + size[0], characters + size[1], count + 1
    least = max(-(-records // ROOM.records), -(-characters // ROOM.characters))
    assert count <= 1.1 * least


def test_five_hundred_endpoints_fit_one_batch() -> None:
    """Two records each: as many as a batch takes, if their values are short enough."""
    value = content(["192.0.2.1"], 30)
    rows = [structs.replace(Row.of(f"n{n}.example.test", Generation(0, 1), value, families="4"), store="ab12")
            for n in range(700)]  # fmt: skip
    roomy = structs.replace(SETTINGS, room=structs.replace(ROOM, characters=0))
    assert [len(batch) for batch in batches(rows, {}, roomy)] == [500, 200]


VALUES = st.dictionaries(
    st.one_of(st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map(str)), st.integers(1, 255), max_size=60
).map(lambda weights: content(weights, 30))


@given(VALUES, VALUES, st.booleans())
def test_the_load_an_enactor_reckons_with_is_never_below_what_is_sent(old: object, new: object, form: bool) -> None:
    """Counted as Route 53 counts: a batch reckoned to fit must fit."""
    assert isinstance(old, type(new))
    seen = Live("a.example.test", marker(1, old), old.a, old.aaaa, 30)  # type: ignore[attr-defined,arg-type]
    made = Change("a.example.test", seen, marker(2, new), new, "4")  # type: ignore[arg-type]
    records, characters = size_of([exchange_of(made, Mirror(DOMAIN, OWNER), weighted=form)])
    load = load_of(made)
    assert records == load.records
    assert characters <= load.characters


def test_an_endpoint_too_big_alone_is_refused_before_any_write(stage: Route53Stage) -> None:
    """external-dns #515, DNSControl #908: 1,000 values of 60 characters; with the numbers, and nothing is sent."""

    async def act() -> None:
        found = stage.port()
        await found.read()
        stage.server.calls.clear()
        name = "big.example.test"
        with pytest.raises(
            Refused, match=r"big\.example\.test is too big: it would have 101 A records; .* 100 in a set"
        ):
            await found.commit((change(Live(name), 1, *(f"10.0.0.{n}" for n in range(101))),))
        thousand = [f"10.0.{n // 250}.{n % 250}" for n in range(1000)]
        with pytest.raises(Refused, match=r"1,001 records and .* Route 53 takes 1,000 and 32,000 in one batch"):
            await found.commit((change(Live(name), 1, *thousand),))
        batch = tuple(change(Live(f"n{n}.example.test"), 1, "192.0.2.1") for n in range(501))
        with pytest.raises(Refused, match="a batch of 501 endpoints is too big"):
            await found.commit(batch)
        assert list(stage.server.calls) == []

    stage.run(act)


def test_a_value_too_long_is_refused_with_the_numbers() -> None:
    """A TXT value takes 4,000 characters; a marker that carries too much would be refused as a whole batch."""
    huge = content({f"2001:db8::{n:x}": n % 200 + 1 for n in range(180)}, 30)
    made = Change("a.example.test", Live("a.example.test"), marker(1, huge), huge, "6")
    one = exchange_of(made, Mirror(DOMAIN, OWNER), weighted=False)
    text_only = structs.replace(one, creates=one.creates[-1:])
    with pytest.raises(Refused, match=r"a value of 4,\d{3} characters; Route 53 takes 4,000"):
        refuse_too_big([text_only], "the write")


def test_no_limit_is_a_zero() -> None:
    """A room says only what its provider counts."""
    assert Room(octets=0).holds(load_of(change(Live("a.example.test"), 1, *(f"10.0.0.{n}" for n in range(250)))))


def test_writers_that_race_each_count_up_once(stage: Route53Stage) -> None:
    """Fifty swaps by five writers, each from what it read: none is lost, none is written twice (the fence)."""

    async def act() -> None:
        name, each, writers = "race.example.test", 10, 5
        ports = [stage.port() for _ in range(writers)]
        refused = 0

        async def count_up(mine: int) -> None:
            nonlocal refused
            found, done = ports[mine], 0
            while done < each:
                await found.read()
                live = found.live(name)
                number = live.marker.generation.number + 1 if live.marker is not None else 1  # type: ignore[union-attr]
                if await found.commit((change(live, number, f"192.0.2.{mine + 1}"),)):
                    done += 1
                else:
                    refused += 1

        await asyncio.gather(*(count_up(mine) for mine in range(writers)))
        await ports[0].read()
        last = ports[0].live(name).marker
        assert last is not None
        assert last.generation == Generation(0, each * writers)  # type: ignore[union-attr]
        assert refused > 0

    stage.run(act)
