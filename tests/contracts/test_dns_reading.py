"""Odd primaries: set back, restored under a known serial, without incremental transfers or with ones that don't fit."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from dns_scene import DOMAIN, OWNER, change, standing
from relay import MadeUp
from servers import KEY_NAME, KEY_SECRET

from fencepost.adapters.dns_rfc2136 import Rfc2136Dns, Rfc2136Settings
from fencepost.core.instant import SECOND
from fencepost.ports import Misconfigured, Unavailable

NAME = f"api.{DOMAIN}"
ONE = standing(NAME, 1, "192.0.2.1")
TWO = standing(NAME, 2, "192.0.2.2")


def record(number: int) -> list[str]:
    """The records of such an endpoint."""
    text = standing(NAME, number, f"192.0.2.{number}").marker
    assert text is not None
    return [
        f"{NAME}. 30 IN A 192.0.2.{number}",
        f'_fencepost.{NAME}. 60 IN TXT "{text.encode()[0].decode()}"',  # type: ignore[union-attr]
    ]


def on_made_up(act: Callable[[MadeUp, Rfc2136Dns], Awaitable[None]]) -> None:
    """Run a test with a made-up primary that holds ``ONE`` and a port that has read it."""

    async def whole() -> None:
        primary = await MadeUp().start()
        primary.records = record(1)
        settings = Rfc2136Settings(("127.0.0.1", primary.port), DOMAIN, KEY_NAME, KEY_SECRET, OWNER, timeout=SECOND)
        port = Rfc2136Dns(settings)
        try:
            await port.read()
            assert port.live(NAME) == ONE
            primary.asked.clear()
            await act(primary, port)
        finally:
            await port.close()
            await primary.stop()

    asyncio.run(whole())


def test_no_incremental_transfer() -> None:
    """A server that doesn't do IXFR is asked for the whole."""

    async def act(primary: MadeUp, port: Rfc2136Dns) -> None:
        primary.serial, primary.records = 2, record(2)
        assert list(await port.read()) == [NAME]
        assert port.live(NAME) == TWO
        assert primary.asked == ["SOA", "IXFR", "AXFR"]

    on_made_up(act)


def test_whole_domain_in_answer_to_an_incremental_question() -> None:
    """A server may answer IXFR with everything (RFC 1995 section 4)."""

    async def act(primary: MadeUp, port: Rfc2136Dns) -> None:
        primary.serial = 2
        primary.ixfr = [primary.soa(), *record(2), primary.soa()]
        assert list(await port.read()) == [NAME]
        assert port.live(NAME) == TWO
        assert primary.asked == ["SOA", "IXFR"]

    on_made_up(act)


def test_versions_condensed_or_one_by_one() -> None:
    """Two versions in one transfer, the second taking back part of the first (RFC 1995 section 7)."""

    async def act(primary: MadeUp, port: Rfc2136Dns) -> None:
        primary.serial = 3
        primary.ixfr = [
            primary.soa(3),
            *(primary.soa(1), *record(1), primary.soa(2), f"{NAME}. 30 IN A 192.0.2.9", *record(2)),
            *(primary.soa(2), f"{NAME}. 30 IN A 192.0.2.9", primary.soa(3), f"other.{DOMAIN}. 60 IN A 192.0.2.8"),
            primary.soa(3),
        ]
        assert set(await port.read()) == {NAME, f"other.{DOMAIN}"}
        assert port.live(NAME) == TWO
        assert port.serial == 3

    on_made_up(act)


@pytest.mark.parametrize(
    "parts",
    [
        "{3} {1} -other {3} {3}",
        "{3} {1} {2} {3}",
        "{3} {2} {3} {3}",
        "{3} {1} {3} {3} {3}",
        "{3} {1} -one {3} +two",
        "-one {3} {3}",
    ],
    ids=["removes-what-isnt-there", "versions-dont-join", "another-start", "goes-on", "no-end", "no-start"],
)
def test_incremental_transfer_that_does_not_fit(parts: str) -> None:
    """An incremental transfer that doesn't fit what is held, or its own form, never gets into the mirror half."""

    async def act(primary: MadeUp, port: Rfc2136Dns) -> None:
        primary.serial, primary.records = 3, record(2)
        words = {"-other": [f"{NAME}. 30 IN A 192.0.2.77"], "-one": record(1), "+two": record(2)}
        for serial in (1, 2, 3):
            words[f"{{{serial}}}"] = [primary.soa(serial)]
        primary.ixfr = [line for part in parts.split() for line in words[part]]
        try:
            await port.read()  # makes no sense: the whole is read
            assert primary.asked == ["SOA", "IXFR", "AXFR"]
            assert (port.serial, port.live(NAME)) == (3, TWO)
        except Unavailable:  # something is still to come
            assert parts == "{3} {1} -one {3} +two"
            assert (port.serial, port.live(NAME)) == (1, ONE)

    on_made_up(act)


def test_server_set_back() -> None:
    """A serial lower than ours (a restored backup): the server says that it has nothing newer; the whole is read."""

    async def act(primary: MadeUp, port: Rfc2136Dns) -> None:
        primary.serial = 5
        primary.ixfr = [primary.soa(5), primary.soa(1), *record(1), primary.soa(5), *record(2), primary.soa(5)]
        await port.read()
        assert (port.serial, port.live(NAME)) == (5, TWO)
        primary.serial, primary.records = 4, record(1)
        primary.ixfr = [primary.soa()]
        assert list(await port.read()) == [NAME]
        assert (port.serial, port.live(NAME)) == (4, ONE)

    on_made_up(act)


def test_known_serial_with_other_records() -> None:
    """A refused batch that the mirror agreed with, at that very serial, shows the mirror wrong: the whole is read."""

    async def act(primary: MadeUp, port: Rfc2136Dns) -> None:
        primary.records = record(2)
        assert not await port.read()
        assert not await port.commit((change(port.live(NAME), 3, "192.0.2.3"),))
        assert list(await port.read()) == [NAME]
        assert port.live(NAME) == TWO
        primary.asked.clear()
        assert not await port.commit((change(ONE, 3, "192.0.2.3"),))  # stale by our own mirror: no reason to doubt it
        await port.read()
        assert primary.asked == ["UPDATE", "SOA"]

    on_made_up(act)


def test_domain_that_became_empty_is_believed_only_when_whole() -> None:
    """A complete, signed transfer of a domain without endpoints is the truth; a name with no records is gone."""

    async def act(primary: MadeUp, port: Rfc2136Dns) -> None:
        primary.serial, primary.records = 2, [f"{DOMAIN}. 60 IN NS ns.{DOMAIN}."]
        assert list(await port.read()) == [NAME]
        assert not list(port.names())

    on_made_up(act)


@pytest.mark.parametrize(
    "line",
    [
        f'{DOMAIN}. 60 IN TXT "at the apex"',
        f'{NAME}. 60 IN TXT "beside"',
        f"sub.{DOMAIN}. 60 IN DNAME elsewhere.example.",
        f"{NAME}. 60 IN MX 10 mail.{DOMAIN}.",
        "outside.example. 60 IN A 192.0.2.9",
        f"bad\\.dot.{DOMAIN}. 60 IN A 192.0.2.9",
        f"back\\092slash.{DOMAIN}. 60 IN A 192.0.2.9",
        f"\\200.{DOMAIN}. 60 IN A 192.0.2.9",
        f'_fencepost._fencepost.x.{DOMAIN}. 60 IN TXT "x"',
        f"_wildcard.{DOMAIN}. 60 IN A 192.0.2.9",
        f"_fencepost.{NAME}. 60 IN A 192.0.2.9",
        f"_fencepost.{NAME}. 60 IN AAAA 2001:db8::9",
        f'_fencepost.*.{DOMAIN}. 60 IN TXT "x"',
    ],
)
def test_what_is_none_of_our_business(line: str) -> None:
    """Types we don't write and names we couldn't publish are passed over, whole or incremental."""

    async def act(primary: MadeUp, port: Rfc2136Dns) -> None:
        primary.serial = 2
        primary.ixfr = [primary.soa(2), primary.soa(1), primary.soa(2), line, primary.soa(2)]
        assert not await port.read()
        primary.serial, primary.records, primary.ixfr = 3, [*record(1), line], None
        assert not await port.read()
        assert (port.serial, port.live(NAME)) == (3, ONE)

    on_made_up(act)


@pytest.mark.parametrize(
    ("lines", "other"),
    [
        ([f"{NAME}. 60 IN CNAME x.{DOMAIN}."], ("CNAME",)),
        ([f"{NAME}. 60 IN NS ns1.{DOMAIN}.", f"{NAME}. 60 IN NS ns2.{DOMAIN}."], ("NS",)),
    ],
)
def test_records_that_forbid_addresses(lines: list[str], other: tuple[str, ...]) -> None:
    """A CNAME, or a delegation below the apex, is shown as ``other``, and gone when its last record is."""

    async def act(primary: MadeUp, port: Rfc2136Dns) -> None:
        primary.serial, primary.ixfr = 2, [primary.soa(2), primary.soa(1), primary.soa(2), *lines, primary.soa(2)]
        assert list(await port.read()) == [NAME]
        assert port.live(NAME).other == other
        primary.serial = 3
        primary.ixfr = [primary.soa(3), primary.soa(2), *lines[1:], primary.soa(3), primary.soa(3)]
        await port.read()
        assert port.live(NAME).other == (other if lines[1:] else ("CNAME",))
        primary.serial = 4
        primary.ixfr = [primary.soa(4), primary.soa(3), lines[0], primary.soa(4), primary.soa(4)]
        assert list(await port.read()) == [NAME]
        assert port.live(NAME) == ONE

    on_made_up(act)


def test_capital_letters_are_the_same_name() -> None:
    """Names compare without case (RFC 4343); spellings of one name never give two endpoints."""

    async def act(primary: MadeUp, port: Rfc2136Dns) -> None:
        primary.serial = 2
        primary.records = [line.replace("api", "API").replace("_fencepost", "_FencePost", 1) for line in record(2)]
        assert list(await port.read()) == [NAME]
        assert port.live(NAME) == TWO

    on_made_up(act)


def test_unknown_domain() -> None:
    """An answer without a SOA record is a wrong name in the settings, not an outage."""

    async def act(primary: MadeUp, port: Rfc2136Dns) -> None:
        primary.soa = lambda *_: f"other.{DOMAIN}. 60 IN A 192.0.2.1"  # type: ignore[method-assign]
        with pytest.raises(Misconfigured, match=f"holds no domain {DOMAIN}"):
            await port.read()

    on_made_up(act)
