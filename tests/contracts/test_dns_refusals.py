"""Refusals by real servers, in words: which it is, what it means, what to do, and that nothing was written."""

import base64
import re
from collections.abc import Iterator

import dns.update
import msgspec
import pytest
from dns_scene import DOMAIN, change, standing
from dns_stages import ServerStage
from servers import KEY_NAME, KEY_SECRET, READER, bind, embedded, knot, powerdns

from fencepost.adapters import dns_signature
from fencepost.adapters.dns_complaints import Standing, bad_rcode
from fencepost.adapters.dns_rfc2136 import Rfc2136Dns
from fencepost.cli.errors import words_of
from fencepost.core.zone import Live
from fencepost.ports import Misconfigured, Refused
from fencepost.roles.loop import Condition

NAME = f"api.{DOMAIN}"
SERVERS = {"bind": bind, "knot": knot, "powerdns": powerdns, "embedded": embedded}
WRONG = base64.b64encode(b"another secret, as long as the 1").decode()


@pytest.fixture(scope="module", params=list(SERVERS))
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerStage]:
    """Ports on a server of each kind."""
    with SERVERS[request.param](tmp_path_factory.mktemp("server")) as running:
        yield ServerStage(running)


def at(stage: ServerStage, **changes: object) -> Rfc2136Dns:
    """A port whose settings differ."""
    return Rfc2136Dns(msgspec.structs.replace(stage.settings(), **changes))


async def refused(port: Rfc2136Dns, name: str = NAME) -> tuple[Misconfigured, Misconfigured]:
    """How a read and a write are refused; for several endpoints at once as for one."""
    found = []
    with pytest.raises(Misconfigured) as caught:
        await port.read()
    found.append(caught.value)
    for batch in (
        (change(Live(name), 2, "192.0.2.9"),),
        (change(Live(name), 2, "192.0.2.9"), change(Live(f"x.{name}"), 2, "192.0.2.9")),
    ):
        with pytest.raises(Misconfigured) as caught:
            await port.commit(batch)
        found.append(caught.value)
    assert found[1].what == found[2].what
    await port.close()
    assert not any(error.unchanged for error in found[:1])
    assert all(error.unchanged for error in found[1:])
    for error in found:
        assert error.means
        assert error.hint.endswith(", then  fencepost plan")
        assert KEY_SECRET not in error.in_full
    return found[0], found[1]


async def untouched(stage: ServerStage) -> None:
    """The endpoint stands as it stood."""
    port = stage.port()
    await port.read()
    assert port.live(NAME) == standing(NAME, 1, "192.0.2.1")


@pytest.mark.parametrize(
    ("changes", "ahead", "error", "means"),
    [
        ({"key_name": "nobody"}, 0, "BADKEY", "no key of that name"),
        ({"key_algorithm": "hmac-sha512"}, 0, "BADKEY", "with that algorithm"),
        ({"key_secret": WRONG}, 0, "BADSIG", "another secret"),
        ({}, 4000, "BADTIME", r"our clock is (4,000|3,999) s ahead of its own; 300 s are allowed"),
        ({}, -4000, "BADTIME", r"our clock is 4,00[01] s behind its own; 300 s are allowed"),
    ],
    ids=["name", "algorithm", "secret", "ahead", "behind"],
)
def test_signature_refusals(
    stage: ServerStage, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], ahead: int, error: str, means: str
) -> None:
    """RFC 8945 section 5.2: each TSIG error is named, with its meaning; a clock's by how much (section 5.2.3).

    PowerDNS answers NOTAUTH to reads and REFUSED to updates in all these cases: there a signed question tells that it
    is the key, and the text says that nothing more is known.
    """

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        port, honest = at(stage, **changes), dns_signature.now_s
        with monkeypatch.context() as patch:
            patch.setattr(dns_signature, "now_s", lambda: honest() + ahead)
            reading, writing = await refused(port)
        key = changes.get("key_name", KEY_NAME)
        for found in (reading, writing):
            if stage.served.kind == "powerdns":
                assert re.search(f'doesn\'t accept our key "{key}.": (NOTAUTH|REFUSED), without a reason', found.what)
                assert "clock" in found.means
            else:
                assert found.what.endswith(f'doesn\'t accept our key "{key}.": TSIG {error}')
                assert re.search(means, found.means)
        assert reading.where == f"AXFR of {DOMAIN}"
        assert writing.where == f"UPDATE of {DOMAIN}: {NAME}, gen none -> 2"
        await untouched(stage)

    stage.run(act)


def test_key_without_the_right_to_write(stage: ServerStage) -> None:
    """A key that may read and not write: REFUSED (Knot: NOTAUTH with BADKEY), and it is said to be a matter of rights.

    Of several endpoints one name may be to blame, so they are split first.
    """
    if stage.served.kind == "embedded":
        pytest.skip("each of its keys may do everything")

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        port = at(stage, key_name=READER)
        await port.read()
        one, two = change(port.live(NAME), 2, "192.0.2.2"), change(Live(f"r2.{DOMAIN}"), 2, "192.0.2.2")
        with pytest.raises(Misconfigured, match=r"answers (REFUSED|NOTAUTH)") as caught:
            await port.commit((one,))
        assert "not our right to it" in caught.value.means
        assert {"bind": "update-policy", "knot": "acl action update", "powerdns": "TSIG-ALLOW-DNSUPDATE"}[
            stage.served.kind
        ] in caught.value.hint
        assert "frozen (rndc freeze), which is refused the same way: rndc thaw DOMAIN" in caught.value.hint
        assert caught.value.unchanged
        with pytest.raises((Refused, Misconfigured)) as several:
            await port.commit((one, two))
        assert several.value.unchanged
        await port.close()
        await untouched(stage)

    stage.run(act)


@pytest.mark.parametrize("domain", ["example.org", "sub.example.test", "test"])
def test_wrong_domain(stage: ServerStage, domain: str) -> None:
    """NOTAUTH (RFC 2136 section 3.1.1): a domain that the server doesn't hold, or holds cut differently, is told from
    a key that isn't accepted; it is never taken for an empty one."""

    async def act() -> None:
        port = at(stage, domain=domain)
        for found in await refused(port, f"www.{domain}"):
            assert f"holds no domain {domain}" in found.what
            assert "accepts our key" in found.means
        assert port.serial == -1

    stage.run(act)


def test_name_outside_the_domain(stage: ServerStage) -> None:
    """NOTZONE (RFC 2136 section 3.1.2): told from NOTAUTH. Our own checks never let one out, so it is sent by hand."""

    async def act() -> None:
        update = dns.update.UpdateMessage(DOMAIN)
        update.add("www.example.org.", 60, "A", "192.0.2.1")
        session = at(stage)._session
        try:
            rcode = await session.update(update.to_wire(), f"UPDATE of {DOMAIN}: www.example.org, gen none -> 1")
            found = await session.complaint(rcode, f"UPDATE of {DOMAIN}: www.example.org, gen none -> 1")
        finally:
            session.close()
        assert isinstance(found, Misconfigured)
        assert found.what.endswith("answers NOTZONE")
        assert "cut differently" in found.means
        assert found.unchanged

    stage.run(act)


def test_refusals_as_a_person_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What, what was being done, what it means, what to try; "unchanged" is never said of an unknown outcome."""
    monkeypatch.setenv("NO_COLOR", "1")
    doing = "UPDATE of example.com: api.example.com, gen 42 -> 43"
    error = bad_rcode("192.0.2.53", "example.com", 5, doing, "fencepost-eu1", Standing.KEY_REFUSED)
    lines = words_of(error).splitlines()
    assert lines[0] == 'error: 192.0.2.53 doesn\'t accept our key "fencepost-eu1.": REFUSED, without a reason'
    assert lines[1] == f"  doing    {doing}. Live records are unchanged."
    assert lines[2].startswith("  means    it has no such key, or has it with another secret")
    assert lines[3].startswith("  try      compare the file under [dns] key")
    assert len(lines) == 4
    assert "unchanged" not in words_of(bad_rcode("192.0.2.53", "example.com", 2, doing))
    condition = Condition()
    condition.failed("Commit", error)
    assert condition.state == "misconfigured"
    assert "; live records are unchanged; it has no such key" in condition.error
