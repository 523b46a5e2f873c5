"""What every DNS port must do, whatever provider lies behind it. ``test_dns_*.py`` run it, each on its own stage."""

import asyncio

import pytest
from dns_agreement import check_agreement
from dns_scene import DOMAIN, Stage, change, marker, standing
from msgspec import structs

from fencepost.core.fence import Foreign, Hold
from fencepost.core.instant import MILLISECOND, SECOND
from fencepost.core.record_set import NOTHING, Content, content
from fencepost.core.zone import Change, Live
from fencepost.ports import Refused


class DnsContract:
    """The suite. ``stage`` comes from the module that subclasses it.

    ``requires_absence`` says whether the provider can be asked for a family that isn't published to be absent.
    """

    requires_absence = True

    def test_first_read_names_everything(self, stage: Stage) -> None:
        """A port starts with nothing and its first read names all (external-dns #414)."""

        async def act() -> None:
            ours = standing("first.example.test", 1, "192.0.2.1")
            plain = Live("plain.example.test", a=("192.0.2.9",), ttl=60)
            await stage.hand(ours, plain)
            port = stage.port()
            assert port.live(ours.name) == Live(ours.name)
            assert {ours.name, plain.name} <= set(await port.read())
            assert port.live(ours.name) == ours
            assert port.live(plain.name) == plain
            assert ours.name in port.names()
            assert plain.name not in port.names()
            assert not await port.read()

        stage.run(act)

    def test_write_is_seen_by_all(self, stage: Stage) -> None:
        """Create, change and withdraw: each stands as written, in canonical order, for the writer and for others."""

        async def act() -> None:
            name = "seen.example.test"
            await stage.hand(Live(name))
            port, other = stage.port(), stage.port()
            await port.read()
            await other.read()
            sets = (("192.0.2.9", "10.0.0.1", "2001:db8::1"), ("192.0.2.9",), ("::ffff:1.2.3.4",))
            for number, addresses in enumerate(sets, 1):
                assert await port.commit((change(port.live(name), number, *addresses),))
                assert name in await port.read()
                assert list(await other.read()) == [name]
                assert port.live(name) == other.live(name) == standing(name, number, *addresses)
            gone = marker(4, NOTHING, hold=Hold("withdraw", 7), epoch=7)
            assert await port.commit((Change(name, port.live(name), gone, NOTHING, "6"),))
            await other.read()
            assert other.live(name) == Live(name, gone)
            assert name in other.names()

        stage.run(act)

    def test_stale_write_is_refused(self, stage: Stage) -> None:
        """A plan made, another writer applies a newer, then the first: refused, the live value stays."""

        async def act() -> None:
            name = "stale.example.test"
            await stage.hand(standing(name, 1, "192.0.2.1"))
            slow, quick = stage.port(), stage.port()
            await slow.read()
            await quick.read()
            held = change(slow.live(name), 2, "192.0.2.2")
            assert await quick.commit((change(quick.live(name), 3, "192.0.2.3"),))
            assert not await slow.commit((held,))
            await slow.read()
            assert slow.live(name) == standing(name, 3, "192.0.2.3")

        stage.run(act)

    def test_second_creator_is_refused(self, stage: Stage) -> None:
        """Two writers that saw nothing: one creates, the other is told that something changed (external-dns #5846)."""

        async def act() -> None:
            name = "create.example.test"
            await stage.hand(Live(name))
            one, two = stage.port(), stage.port()
            await one.read()
            await two.read()
            done = await asyncio.gather(
                one.commit((change(one.live(name), 1, "192.0.2.1"),)),
                two.commit((change(two.live(name), 1, "192.0.2.2"),)),
            )
            assert sorted(done) == [False, True]
            await one.read()
            assert one.live(name) == standing(name, 1, "192.0.2.1" if done[0] else "192.0.2.2")

        stage.run(act)

    @pytest.mark.parametrize(
        "hand",
        [
            standing("exact.example.test", 2, "192.0.2.1"),
            Live("exact.example.test", standing("x", 1, "192.0.2.1").marker, ("192.0.2.1", "192.0.2.7"), (), 30),
            Live("exact.example.test", standing("x", 1, "192.0.2.1").marker, ("192.0.2.7",), (), 30),
            standing("exact.example.test", 1, "192.0.2.1", "2001:db8::7"),
            Live("exact.example.test", standing("x", 1, "192.0.2.1").marker),
            Live("exact.example.test", None, ("192.0.2.1",), (), 30),
            Live("exact.example.test"),
            Live("exact.example.test", Foreign("", ((b"mine",),)), ("192.0.2.1",), (), 30),
        ],
        ids=["marker", "address-added", "address-moved", "family-too", "emptied", "marker-gone", "all-gone", "foreign"],
    )
    def test_exact(self, stage: Stage, hand: Live) -> None:
        """What another changed since the read, in marker or addresses, refuses the write (RFC 2136 section 2.4.2)."""

        async def act() -> None:
            name = "exact.example.test"
            await stage.hand(standing(name, 1, "192.0.2.1"))
            port = stage.port()
            await port.read()
            held = change(port.live(name), 2, "192.0.2.2")
            await stage.hand(hand)
            assert not await port.commit((held,))
            await port.read()
            assert port.live(name) == hand
            assert await port.commit((change(port.live(name), 3, "192.0.2.3"),))
            await port.read()
            assert port.live(name) == standing(name, 3, "192.0.2.3")

        stage.run(act)

    def test_family_added_beside_the_same_marker(self, stage: Stage) -> None:
        """The marker alone gives nothing away: of A, AAAA that came since refuses the write, or is seen and taken."""

        async def act() -> None:
            name = "beside.example.test"
            await stage.hand(standing(name, 1, "192.0.2.1"))
            port = stage.port()
            await port.read()
            held = change(port.live(name), 2, "192.0.2.2")
            added = structs.replace(port.live(name), aaaa=("2001:db8::7",))
            await stage.hand(added)
            assert await port.commit((held,)) is not self.requires_absence
            await port.read()
            if self.requires_absence:
                assert port.live(name) == added
            assert port.live(name).aaaa == ("2001:db8::7",)
            assert await port.commit((change(port.live(name), 3, "192.0.2.3"),))
            await port.read()
            assert port.live(name) == standing(name, 3, "192.0.2.3")

        stage.run(act)

    def test_batch_is_all_or_nothing(self, stage: Stage) -> None:
        """One stale change in three: none applies, neither markers nor records (external-dns #6683)."""

        async def act() -> None:
            names = [f"batch{index}.example.test" for index in range(3)]
            await stage.hand(*(standing(name, 1, "192.0.2.1") for name in names))
            port = stage.port()
            await port.read()
            batch = tuple(change(port.live(name), 2, "192.0.2.2") for name in names)
            await stage.hand(standing(names[2], 5, "192.0.2.5"))
            assert not await port.commit(batch)
            assert list(await port.read()) == [names[2]]
            assert port.live(names[0]) == standing(names[0], 1, "192.0.2.1")
            assert await port.commit(batch[:2])
            await port.read()
            assert port.live(names[1]) == standing(names[1], 2, "192.0.2.2")

        stage.run(act)

    def test_large_batch(self, stage: Stage) -> None:
        """150 endpoints in one transaction: names past 16 KiB can't be pointed at (RFC 1035 section 4.1.4)."""

        async def act() -> None:
            names = [f"{star}large{index:03}.example.test" for index in range(75) for star in ("", "*.")]
            await stage.hand(*(Live(name) for name in names))
            port, other = stage.port(), stage.port()
            await port.read()
            sets = {name: (f"192.0.2.{index}", f"2001:db8::{index + 1:x}") for index, name in enumerate(names)}
            assert await port.commit(tuple(change(port.live(name), 1, *sets[name]) for name in names))
            await other.read()
            assert [other.live(name) for name in names] == [standing(name, 1, *sets[name]) for name in names]
            held = tuple(change(other.live(name), 2, "192.0.2.1") for name in names)
            await stage.hand(standing(names[-1], 3, "192.0.2.1"))
            assert not await other.commit(held)
            assert await port.commit(held[:-1])
            await other.read()
            assert [other.live(name) for name in names[:-1]] == [standing(name, 2, "192.0.2.1") for name in names[:-1]]
            await stage.hand(*(Live(name) for name in names))

        stage.run(act)

    def test_emptying_is_refused(self, stage: Stage) -> None:
        """``never_empty``: a published family without an address isn't sent, not even beside good changes."""

        async def act() -> None:
            name = "empty.example.test"
            await stage.hand(standing(name, 1, "192.0.2.1", "2001:db8::1"))
            port = stage.port()
            await port.read()
            seen, four = port.live(name), content(["192.0.2.2"], 30)
            for value in (four, Content(ttl=30), content(["2001:db8::2"], 30)):
                with pytest.raises(Refused, match=r"empty\.example\.test"):
                    await port.commit((Change(name, seen, marker(2, value), value, "46"),))
            assert not await port.read()
            assert port.live(name) == seen

        stage.run(act)

    def test_bad_label_is_named(self, stage: Stage) -> None:
        """An endpoint ".x" among good ones: refused with its reason, the good ones written (external-dns #1517)."""

        async def act() -> None:
            good = [f"good{index}.example.test" for index in range(20)]
            await stage.hand(*(Live(name) for name in good))
            port = stage.port()
            await port.read()
            batch = tuple(change(port.live(name), 1, "192.0.2.1") for name in good)
            for bad in (".x.example.test", f"{'a' * 64}.example.test", "www.example.org", good[0]):
                with pytest.raises(Refused, match=bad.replace(".", r"\.")):
                    await port.commit((*batch, change(Live(bad), 1, "192.0.2.1")))
            assert await port.commit(batch)
            await port.read()
            assert [port.live(name) for name in good] == [standing(name, 1, "192.0.2.1") for name in good]

        stage.run(act)

    def test_nothing_to_do(self, stage: Stage) -> None:
        """An empty batch applies, and changes nothing (external-dns #605: what is done already is no error)."""

        async def act() -> None:
            port = stage.port()
            await port.read()
            assert await port.commit(())
            assert not await port.read()

        stage.run(act)

    def test_cname_is_not_ours(self, stage: Stage) -> None:
        """A CNAME at the name is shown, and no write beside it is taken for done (BIND: NOERROR, nothing added)."""

        async def act() -> None:
            name = "alias.example.test"
            await stage.hand(Live(name))
            port = stage.port()
            await port.read()
            held = change(port.live(name), 1, "192.0.2.1")
            await stage.hand(Live(name, other=("CNAME",)))
            assert not await port.commit((held,))
            assert list(await port.read()) == [name]
            assert port.live(name) == Live(name, other=("CNAME",))
            await stage.hand(Live(name))
            await port.read()
            assert await port.commit((change(port.live(name), 1, "192.0.2.1"),))
            await stage.hand(Live(name))

        stage.run(act)

    @pytest.mark.parametrize(
        "raw",
        [
            ((b"x" * 255, b"y" * 45),),
            ((b'a"b\\c; d', b""),),
            ((b"",),),
            ((b"\x00\xff\xc3\xa9",),),
            ((b"heritage=other",), (b"second",)),
            (marker(1, content(["192.0.2.1"], 30)).encode(), (b"added by hand",)),
            ((*marker(1, content(["192.0.2.1"], 30)).encode(), b"added by hand"),),
            tuple(sorted((marker(1, NOTHING).encode(), marker(2, NOTHING, owner="us-2").encode()))),
        ],
        ids=["300-bytes", "quotes", "empty", "bytes", "two", "two-one-ours", "ours-and-more", "two-markers"],
    )
    def test_foreign_marker(self, stage: Stage, raw: tuple[tuple[bytes, ...], ...]) -> None:
        """What isn't exactly one marker comes back byte for byte and is required so (DNSControl #2854, lego #1351)."""

        async def act() -> None:
            name = "foreign.example.test"
            raw_sorted = tuple(sorted(raw))
            whose = "us-2" if b"us-2" in b"".join(map(b"".join, raw)) else ""
            await stage.hand(Live(name, Foreign(whose, raw_sorted), ("192.0.2.1",), (), 30))
            port = stage.port()
            await port.read()
            seen = port.live(name)
            assert seen.marker == Foreign(whose, raw_sorted)
            less = Foreign(whose, (*raw_sorted, (b"more",)))
            assert not await port.commit((change(Live(name, less, seen.a), 2, "192.0.2.2"),))
            assert await port.commit((change(seen, 2, "192.0.2.2"),))
            await port.read()
            assert port.live(name) == standing(name, 2, "192.0.2.2")

        stage.run(act)

    def test_other_owners_marker_stays_a_marker(self, stage: Stage) -> None:
        """A well-formed marker of another owner is read as what it is; who may write is for the enactor to judge."""

        async def act() -> None:
            value = content(["192.0.2.1"], 30)
            live = Live("theirs.example.test", marker(1, value, owner="us-2"), value.a, (), 30)
            await stage.hand(live)
            port = stage.port()
            await port.read()
            assert port.live(live.name) == live

        stage.run(act)

    def test_marker_carries_content(self, stage: Stage) -> None:
        """100 A + 100 AAAA with weights ride in the marker's further strings and come back the same."""

        async def act() -> None:
            name = "heavy.example.test"
            weights = {f"10.0.{index}.1": index % 7 + 1 for index in range(100)}
            weights |= {f"2001:db8::{index:x}": index % 5 + 1 for index in range(1, 101)}
            value = content(weights, 30)
            await stage.hand(Live(name))
            port, other = stage.port(), stage.port()
            await port.read()
            assert await port.commit((Change(name, Live(name), marker(1, value), value, "46"),))
            await other.read()
            assert other.live(name).content() == value
            assert other.live(name).verified()

        stage.run(act)

    @pytest.mark.parametrize("name", ["*.wild.example.test", f"{'l' * 63}.example.test", "a-b.deep.er.example.test"])
    def test_names(self, stage: Stage, name: str) -> None:
        """Wildcards (external-dns #3028), a label of 63 bytes (external-dns #3757) and deep names converge."""

        async def act() -> None:
            await stage.hand(Live(name))
            port, other = stage.port(), stage.port()
            await port.read()
            assert await port.commit((change(port.live(name), 1, "192.0.2.1"),))
            await other.read()
            assert other.live(name) == standing(name, 1, "192.0.2.1")
            assert name in other.names()
            assert await other.commit((change(other.live(name), 2, "192.0.2.2"),))
            await port.read()
            assert port.live(name) == standing(name, 2, "192.0.2.2")
            await stage.hand(Live(name))

        stage.run(act)

    def test_apex(self, stage: Stage) -> None:
        """The domain's own name can be an endpoint; its SOA and NS stay."""

        async def act() -> None:
            await stage.hand(Live(DOMAIN))
            port = stage.port()
            await port.read()
            assert port.live(DOMAIN) == Live(DOMAIN)
            assert await port.commit((change(port.live(DOMAIN), 1, "192.0.2.1"),))
            await port.read()
            assert port.live(DOMAIN) == standing(DOMAIN, 1, "192.0.2.1")
            await stage.hand(Live(DOMAIN))

        stage.run(act)

    def test_ttl_alone(self, stage: Stage) -> None:
        """A TTL that differs is seen and can be put right, though nobody can require it (RFC 2136 section 2.4.2)."""

        async def act() -> None:
            name = "ttl.example.test"
            await stage.hand(standing(name, 1, "192.0.2.1", "2001:db8::1", ttl=300))
            port = stage.port()
            await port.read()
            seen = port.live(name)
            assert seen.ttl == 300
            assert await port.commit((change(seen, 2, "192.0.2.1", "2001:db8::1", ttl=30),))
            await port.read()
            assert port.live(name) == standing(name, 2, "192.0.2.1", "2001:db8::1", ttl=30)

        stage.run(act)

    def test_wait_ends_at_a_change(self, stage: Stage) -> None:
        """A change by another ends the wait; without one it lasts its time."""

        async def act() -> None:
            name = "wait.example.test"
            await stage.hand(Live(name))
            port = stage.port()
            await port.read()
            await port.wait(30 * MILLISECOND)
            assert not await port.read()
            waiting = asyncio.ensure_future(port.wait(60 * SECOND))
            await asyncio.sleep(0)
            await stage.hand(standing(name, 1, "192.0.2.1"))
            await asyncio.wait_for(waiting, 30)
            assert list(await port.read()) == [name]

        stage.run(act)

    def test_agrees_with_the_reference_transaction(self, stage: Stage) -> None:
        """Random domains, hands and batches, stale and fresh: outcome and records are ``transact``'s, exactly."""
        check_agreement(stage)
