"""Packets between managers and agents: they come out as they went in, and hostile ones come to nothing."""

import random
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.capacity.messages import (
    Answer,
    Check,
    FromHost,
    Instance,
    InstanceSet,
    NetworkAnswer,
    NetworkOrder,
    NetworkState,
    Newer,
    Order,
    ToHost,
)
from fencepost.core.capacity.token import Token
from fencepost.roles.fleet.agent_server import CUT, AgentServer, Answerer
from fencepost.roles.fleet.wire import DATAGRAM_BYTES, FRAME_BYTES, Frames, TooLong, Wire, framed

WIRE = Wire(b"k" * 32)
T = Token(3, 7, 2**63)
WEB = InstanceSet(4, (Instance("web-1.1", "web", "127.0.3.1", 5302, ("serve", "{port}")),))
QUESTIONS: tuple[ToHost, ...] = (
    Check("h1", T, whole=True),
    Order("h1", T, 5, 10**18, WEB),
    NetworkOrder("h1", T, (NetworkState("web-1.1", 9, "ab", b"{}"),)),
)
ANSWERS: tuple[FromHost, ...] = (
    Answer("h1", T, 5, 10**18, 2**64 - 1, 4, ("web-1.1",), WEB),
    Newer("h1", T),
    NetworkAnswer("h1", 5, 6, (("web-1.1", 9, "ab"),), ("web-2.1",)),
)


def asked(request: int, message: ToHost) -> bytes:
    """A manager's packet."""
    return WIRE.pack("to host", request, message, DATAGRAM_BYTES)


@pytest.mark.parametrize("message", QUESTIONS)
def test_a_question_comes_out_as_it_went_in_and_only_as_a_question(message: ToHost) -> None:
    """Thrown back at its sender it is no answer: each direction has a seal of its own."""
    packet = asked(2**64 - 1, message)
    assert WIRE.open_to_host(packet) == (2**64 - 1, message)
    assert WIRE.open_from_host(packet) is None
    assert Wire(b"j" * 32).open_to_host(packet) is None


@pytest.mark.parametrize("message", ANSWERS)
def test_an_answer_comes_out_as_it_went_in_and_only_as_an_answer(message: FromHost) -> None:
    """And so the other way round."""
    packet = WIRE.pack("from host", 7, message, DATAGRAM_BYTES)
    assert WIRE.open_from_host(packet) == (7, message)
    assert WIRE.open_to_host(packet) is None


def test_what_is_too_long_for_where_it_goes_is_said_so() -> None:
    """Nothing is cut on the way: a datagram in two parts is lost with either."""
    with pytest.raises(TooLong, match="Check for h"):
        WIRE.pack("to host", 1, Check("h" * 1200, T), DATAGRAM_BYTES)


@given(st.sampled_from(QUESTIONS), st.integers(0, 400), st.integers(1, 255))
def test_one_changed_byte_and_it_is_nothing(message: ToHost, at: int, flip: int) -> None:
    """Seal, request id and body alike."""
    packet = bytearray(asked(1, message))
    packet[at % len(packet)] ^= flip
    assert WIRE.open_to_host(bytes(packet)) is None


def test_ten_thousand_hostile_packets_come_to_nothing() -> None:
    """Noise, cut and joined packets, and rightly sealed rubbish, such as a peer of another version may send."""
    chance = random.Random(1)
    good, before = [asked(1, each) for each in QUESTIONS], WIRE.dropped
    for _ in range(2_500):
        packet = chance.choice(good)
        hostile = (
            chance.randbytes(chance.randrange(200)),
            packet[: chance.randrange(len(packet))],
            packet + chance.randbytes(chance.randrange(1, 30)),
            packet[:24] + chance.randbytes(chance.randrange(1, 300)),
        )
        assert all(WIRE.open_to_host(each) is None and WIRE.open_from_host(each) is None for each in hostile)
    assert WIRE.dropped == before + 20_000


@given(st.binary(max_size=200))
def test_rightly_sealed_rubbish_is_read_as_nothing_or_as_a_message(body: bytes) -> None:
    """Whatever the body, reading it never raises."""
    rest = bytes(8) + body
    found = WIRE.open_to_host(WIRE._seal("to host", rest) + rest)
    assert found is None or isinstance(found[1], Check | Order | NetworkOrder)


@given(st.lists(st.binary(min_size=25, max_size=90), max_size=6), st.integers(1, 50))
def test_frames_come_out_however_a_connection_cuts_them(packets: list[bytes], cut: int) -> None:
    """TCP keeps no boundaries."""
    stream, frames = b"".join(map(framed, packets)), Frames()
    found = [packet for at in range(0, len(stream), cut) for packet in frames.feed(stream[at : at + cut])]
    assert found == packets


@pytest.mark.parametrize("size", [0, 23, FRAME_BYTES + 1, 2**32 - 1])
def test_a_length_that_cant_be_ends_the_connection(size: int) -> None:
    """Nobody makes an agent wait for, or hold, four gigabytes."""
    with pytest.raises(TooLong, match="a frame of"):
        Frames().feed(size.to_bytes(4, "big"))


@pytest.mark.parametrize("size", [0, 15])
def test_a_key_that_keeps_nobody_out_is_refused(size: int) -> None:
    """Shorter than the seal, it would be what is guessed."""
    with pytest.raises(ValueError, match="at least 16 bytes"):
        Wire(bytes(size))


def test_words_for_people_give_way_before_what_is_decided_by() -> None:
    """Twenty attempts down with a line each don't fit into a datagram: all of the ids do, and the first one's words."""
    server = AgentServer(WIRE, cast("Answerer", None))
    ids = tuple(f"web-{number}.1" for number in range(20))
    packet = server.short(9, Answer("h1", T, 5, 10**18, 7, 4, ids, None, ("no port " * 15,) * 20))
    assert packet is not None
    assert len(packet) <= DATAGRAM_BYTES
    assert WIRE.open_from_host(packet) == (9, Answer("h1", T, 5, 10**18, 7, 4, ids, None, ("no port " * 15,)))
    many = tuple(f"web-{number}.1" for number in range(300))
    packet = server.short(9, Answer("h1", T, 5, 10**18, 7, 4, many, None, ("no port",) * 64))
    assert packet is not None
    assert WIRE.open_from_host(packet) == (9, Answer("h1", T, 5, 10**18, 7, 4, many[:CUT]))


def test_an_answer_of_an_agent_of_another_version_is_read() -> None:
    """Hosts are upgraded one by one, and their managers before or after."""
    answer = Answer("h1", T, 5, 10**18, 7, 4, ("web-1.1",))
    fields = msgspec.msgpack.decode(msgspec.msgpack.encode(answer))
    for told in (fields[:-3], fields[:-2], fields[:-1], [*fields, "something newer"]):
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(told), type=Answer) == answer


@pytest.mark.parametrize(
    "message",
    [
        Answer("h1", Token(1, 2**63, 1), 5, 1, 5, 1),
        Answer("h1", Token(2**64 - 1, 1, 1), 5, 1, 5, 1),
        Answer("h1", Token(1, 1, -1), 5, 1, 5, 1),
        Answer("h1", T, -1, 1, 5, 1),
        Answer("h1", T, 5, -1, 5, 1),
        Answer("h1", T, 5, 1, -5, 1),
        Answer("h1", T, 5, 1, 5, 2**63),
        Newer("h1", Token(2**63, 1, 1)),
        NetworkAnswer("h1", -5, 6, ()),
    ],
)
def test_an_answer_with_numbers_that_cant_be_is_none(message: FromHost) -> None:
    """Sealed rightly, by a host that has lost its wits, each of them ended its manager, whose arrays have 64 bits."""
    wire = Wire(b"k" * 32)
    assert wire.open_from_host(WIRE.pack("from host", 7, message, DATAGRAM_BYTES)) is None
    assert wire.dropped == 1
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(Check("h1", Token(2**63, 0, 0))), type=ToHost)
