"""Packets between managers and agents: they come out as they went in, and hostile ones come to nothing."""

import random

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
from fencepost.core.capacity.wire import DATAGRAM_BYTES, FRAME_BYTES, Frames, Heard, Question, Sealer, framed

SEALER = Sealer(b"k" * 32)
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


@pytest.mark.parametrize("message", QUESTIONS)
def test_a_question_comes_out_as_it_went_in_and_only_as_a_question(message: ToHost) -> None:
    """Thrown back at its sender it is no answer: the direction is sealed too."""
    packet = SEALER.ask(2**64 - 1, message)
    assert SEALER.asked(packet) == Question(2**64 - 1, message)
    assert SEALER.answered(packet) is None
    assert Sealer(b"j" * 32).asked(packet) is None


@pytest.mark.parametrize("message", ANSWERS)
def test_an_answer_comes_out_as_it_went_in_and_only_as_an_answer(message: FromHost) -> None:
    """And so the other way round."""
    packet = SEALER.answer(7, message, datagram=True)
    assert SEALER.answered(packet) == Heard(7, message)
    assert SEALER.asked(packet) is None


def test_an_answer_too_big_for_a_datagram_says_so_with_nothing() -> None:
    """As DNS does with TC (RFC 1035, section 4.1.1); over a connection it goes whole."""
    many = InstanceSet(1, tuple(Instance(f"web-{n}.1", "web", "127.0.3.1", 80) for n in range(100)))
    answer = Answer("h1", T, 5, 10, 6, 1, (), many)
    short = SEALER.answer(7, answer, datagram=True)
    assert len(short) < DATAGRAM_BYTES
    assert SEALER.answered(short) == Heard(7, None)
    assert SEALER.answered(SEALER.answer(7, answer, datagram=False)) == Heard(7, answer)


@given(st.sampled_from(QUESTIONS), st.integers(0, 400), st.integers(1, 255))
def test_one_changed_byte_and_it_is_nothing(message: ToHost, at: int, flip: int) -> None:
    """Seal, request id and body alike."""
    packet = bytearray(SEALER.ask(1, message))
    packet[at % len(packet)] ^= flip
    assert SEALER.asked(bytes(packet)) is None


def test_ten_thousand_hostile_packets_come_to_nothing() -> None:
    """Noise, cut and joined packets, and rightly sealed rubbish, such as a peer of another version may send."""
    chance = random.Random(1)
    good = [SEALER.ask(1, each) for each in QUESTIONS]
    for _ in range(10_000):
        packet = chance.choice(good)
        hostile = (
            chance.randbytes(chance.randrange(200)),
            packet[: chance.randrange(len(packet))],
            packet + chance.randbytes(chance.randrange(1, 30)),
            packet[:24] + chance.randbytes(chance.randrange(1, 300)),
        )
        assert all(SEALER.asked(each) is None and SEALER.answered(each) is None for each in hostile)


@given(st.binary(max_size=200))
def test_rightly_sealed_rubbish_is_read_as_nothing_or_as_a_message(body: bytes) -> None:
    """Whatever the body, reading it never raises."""
    from fencepost.core.capacity import wire

    packet = wire._packed(SEALER._to_host.copy(), 1, body)
    found = SEALER.asked(packet)
    assert found is None or isinstance(found.message, Check | Order | NetworkOrder)


@given(st.lists(st.binary(min_size=24, max_size=90), max_size=6), st.integers(1, 50))
def test_frames_come_out_however_a_connection_cuts_them(packets: list[bytes], cut: int) -> None:
    """TCP keeps no boundaries."""
    stream, frames = b"".join(map(framed, packets)), Frames()
    found = [packet for at in range(0, len(stream), cut) for packet in frames.feed(stream[at : at + cut])]
    assert found == packets


@pytest.mark.parametrize("size", [0, 23, FRAME_BYTES + 1, 2**32 - 1])
def test_a_length_that_cant_be_ends_the_connection(size: int) -> None:
    """Nobody makes an agent wait for, or hold, four gigabytes."""
    with pytest.raises(ValueError, match="a frame of"):
        Frames().feed(size.to_bytes(4, "big"))
    with pytest.raises(ValueError, match="fit"):
        framed(bytes(FRAME_BYTES + 1))


@pytest.mark.parametrize("size", [0, 15, 65])
def test_a_key_that_keeps_nobody_out_is_refused(size: int) -> None:
    """Nor does it appear in any text."""
    with pytest.raises(ValueError, match="16 to 64"):
        Sealer(bytes(size))
    assert "k" not in repr(SEALER)
