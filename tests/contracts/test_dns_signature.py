"""Signatures verified from bytes (RFC 8945) are judged as dnspython judges them, whatever was done to the message."""

import dns.message
import dns.name
import dns.rdatatype
import dns.rrset
import dns.tsig
import dns.tsigkeyring
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from servers import DOMAIN, KEY_NAME, KEY_SECRET

from fencepost.adapters import dns_signature
from fencepost.adapters.dns_signature import SignatureError, Signer, Unverified, Verifier
from fencepost.adapters.dns_wire import Head, read_records, skip_question
from fencepost.core.dns_numbers import Malformed

SIGNER = Signer(KEY_NAME, "hmac-sha256", KEY_SECRET)
KEYS = dns.tsigkeyring.from_text({KEY_NAME: KEY_SECRET})
ALGORITHMS = ("hmac-sha1", "hmac-sha224", "hmac-sha256", "hmac-sha256-128", "hmac-sha384", "hmac-sha512")


def asked_and_answered(signer: Signer = SIGNER, algorithm: str = "hmac-sha256") -> tuple[bytes, bytes]:
    """A signed question's MAC, and dnspython's answer to it."""
    key = dns.tsig.Key(KEY_NAME, KEY_SECRET, algorithm)
    query = dns.message.make_query(DOMAIN, "SOA")
    signed, mac = signer.sign(query.to_wire())
    heard = dns.message.from_wire(signed, keyring={key.name: key})
    assert heard.had_tsig, "dnspython verifies what we sign"
    reply = dns.message.make_response(heard)
    reply.answer.append(dns.rrset.from_text(f"{DOMAIN}.", 60, "IN", "SOA", "ns. admin. 1 2 3 4 5"))
    return mac, reply.to_wire()


def verdict(message: bytes, mac: bytes, *, usual: bool, signer: Signer = SIGNER) -> object:
    """What the verifier makes of an answer, with its quick way or by dnspython alone; anything unforeseen is raised."""
    with pytest.MonkeyPatch.context() as patch:
        if not usual:
            patch.setattr(Signer, "_usual", lambda *_: None)
        try:
            head, known = Head(message), dict[int, bytes]()
            _, at = read_records(message, skip_question(message, head.counts[0], known), head.counts[1], known)
            return Verifier(signer, mac).check(message, head, at, known)
        except (Malformed, Unverified) as error:
            return type(error)
        except SignatureError as error:
            return error.error, error.ahead_s


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_spoilt_answer_is_judged_as_by_dnspython(data: st.DataObject) -> None:
    """Bytes altered, cut or added anywhere: the verdict is the same, and good only if the message is."""
    mac, good = asked_and_answered()
    spoilt = bytearray(good)
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(good) - 1) | st.integers(len(good) - 100, len(good) - 1) | st.just(11))
        spoilt[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, 40))
    message = bytes(spoilt[: len(spoilt) - cut] if cut < 20 else spoilt + bytes(cut - 19 if cut > 30 else 0))
    ours = verdict(message, mac, usual=True)
    assert ours == verdict(message, mac, usual=False)
    if ours is True and message != good:
        # Names compare without case, so a signature covers them in lower case; its record's class and TTL count as the
        # ANY and 0 that they have to be, whatever stands there (RFC 8945 section 4.3.3).
        fixed = slice(good.rindex(b"\x00\xfa\x00\xff") + 2, good.rindex(b"\x00\xfa\x00\xff") + 8)
        whole = message[: fixed.start] + good[fixed] + message[fixed.stop :]
        assert whole.lower() == good.lower() or message[:2] != good[:2]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_algorithm_is_spoken_and_no_other_taken(algorithm: str) -> None:
    """Ours verifies; the same key with another algorithm doesn't."""
    signer = Signer(KEY_NAME, algorithm, KEY_SECRET)
    mac, good = asked_and_answered(signer, algorithm)
    assert verdict(good, mac, usual=True, signer=signer) is True
    for other in ALGORITHMS:
        if other != algorithm:
            assert verdict(good, mac, usual=True, signer=Signer(KEY_NAME, other, KEY_SECRET)) is Unverified


@pytest.mark.parametrize(("late_s", "good"), [(-301, False), (-299, True), (0, True), (299, True), (301, False)])
def test_a_signature_holds_for_five_minutes(monkeypatch: pytest.MonkeyPatch, late_s: int, *, good: bool) -> None:
    """RFC 8945 section 5.2.3: a recorded answer is no answer later."""
    mac, message = asked_and_answered()
    tsig = dns.message.from_wire(message, keyring=KEYS, request_mac=mac).tsig
    assert tsig is not None
    monkeypatch.setattr(dns_signature, "now_s", lambda: tsig[0].time_signed + late_s)
    assert verdict(message, mac, usual=True) is (True if good else Unverified)


def test_a_shortened_signature_is_none() -> None:
    """RFC 8945 section 5.2.2.1: a prefix of the right MAC, down to nothing, is not accepted."""
    mac, good = asked_and_answered()
    end = len(good) - 6  # original id, error, other length
    for size in (0, 1, 16, 31):
        data_at = end - 32 - 2
        short = bytearray(good[:data_at] + size.to_bytes(2, "big") + good[end - 32 : end - 32 + size] + good[end:])
        length_at = data_at - 8 - len(dns.name.from_text("hmac-sha256").to_wire() or b"") - 2
        length = int.from_bytes(good[length_at : length_at + 2], "big") - 32 + size
        short[length_at : length_at + 2] = length.to_bytes(2, "big")
        assert verdict(bytes(short), mac, usual=True) is Unverified


def test_a_signature_that_is_no_additional_record() -> None:
    """RFC 8945 section 5.1 has it in the additional section; counted elsewhere it is refused, not stumbled over."""
    mac, good = asked_and_answered()
    moved = good[:8] + good[10:12] + b"\x00\x00" + good[12:]
    assert verdict(moved, mac, usual=True) is Unverified
