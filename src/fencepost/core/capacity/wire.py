"""What managers and agents say to each other, as bytes: sealed, in a datagram or in frames of a connection.

    packet   = seal (16) | request id (8) | body (MessagePack of one message)
    seal     = keyed BLAKE2b of: direction (1) | request id | body
    datagram = packet, at most 1,200 bytes: more would be fragmented on the way, and lost whole with any of its parts
    frame    = length (4, big-endian) | packet, at most 1 MiB; a connection carries many, in any order

The seal keeps out whoever hasn't the fleet's key, and the direction in it keeps a packet from being thrown back at its
sender. It hides nothing, and doesn't keep an old packet from being sent again: messages are made so that a repeated one
does no harm. What isn't sealed rightly gets no answer at all, so an agent tells a stranger nothing, and multiplies
nothing towards a forged address.

An answer that is too big for a datagram is sent there with an empty body, as DNS sets its bit TC (RFC 1035, section
4.1.1): ask again over a connection.
"""

from hashlib import blake2b
from typing import NamedTuple

import msgspec

from fencepost.core.capacity.messages import FromHost, ToHost

DATAGRAM_BYTES = 1200
FRAME_BYTES = 2**20
KEY_BYTES_LEAST, KEY_BYTES_MOST = 16, 64
"""Shorter than the seal and it would be the weaker part; longer ones BLAKE2b doesn't take."""
_SEAL_BYTES = 16
_HEAD_BYTES = 24
_BROKEN = (msgspec.MsgspecError, ValueError, RecursionError)


class Question(NamedTuple):
    """What a host is told. ``request`` is what its answer must carry back: 64 bits, drawn by the manager."""

    request: int
    message: ToHost


class Heard(NamedTuple):
    """What a manager hears. ``message`` is None if it didn't fit into a datagram."""

    request: int
    message: FromHost | None


class Sealer:
    """One fleet's key, and both ends' packing and reading. Reading gives None for all that isn't rightly sealed."""

    def __init__(self, key: bytes) -> None:
        if not KEY_BYTES_LEAST <= len(key) <= KEY_BYTES_MOST:
            raise ValueError(f"a fleet key has {KEY_BYTES_LEAST} to {KEY_BYTES_MOST} bytes, not {len(key)}")
        self._to_host = blake2b(b">", key=key, digest_size=_SEAL_BYTES)
        self._from_host = blake2b(b"<", key=key, digest_size=_SEAL_BYTES)
        self._encoder = msgspec.msgpack.Encoder()
        self._question = msgspec.msgpack.Decoder(ToHost)
        self._answer = msgspec.msgpack.Decoder(FromHost)

    def __repr__(self) -> str:
        """Show nothing of the key."""
        return "Sealer()"

    def ask(self, request: int, message: ToHost) -> bytes:
        """A manager's packet."""
        return _packed(self._to_host.copy(), request, self._encoder.encode(message))

    def answer(self, request: int, message: FromHost, *, datagram: bool) -> bytes:
        """A host's packet; for a datagram, an empty one if the message doesn't fit."""
        body = self._encoder.encode(message)
        if datagram and _HEAD_BYTES + len(body) > DATAGRAM_BYTES:
            body = b""
        return _packed(self._from_host.copy(), request, body)

    def asked(self, packet: bytes) -> Question | None:
        """What a manager asks."""
        if not _sealed(self._to_host.copy(), packet):
            return None
        try:
            return Question(int.from_bytes(packet[16:24], "big"), self._question.decode(packet[24:]))
        except _BROKEN:
            return None

    def answered(self, packet: bytes) -> Heard | None:
        """What a host answers."""
        if not _sealed(self._from_host.copy(), packet):
            return None
        try:
            message = self._answer.decode(packet[24:]) if len(packet) > _HEAD_BYTES else None
        except _BROKEN:
            return None
        return Heard(int.from_bytes(packet[16:24], "big"), message)


def _packed(seal: "blake2b", request: int, body: bytes) -> bytes:
    rest = request.to_bytes(8, "big") + body
    seal.update(rest)
    return seal.digest() + rest


def _sealed(seal: "blake2b", packet: bytes) -> bool:
    if len(packet) < _HEAD_BYTES:
        return False
    seal.update(packet[16:])
    # Compared as numbers, at once: byte by byte, the time it takes would tell how much of a guess is right.
    return not int.from_bytes(seal.digest(), "big") ^ int.from_bytes(packet[:16], "big")


def framed(packet: bytes) -> bytes:
    """A packet as it goes over a connection. Raises ``ValueError`` if it is too big for that."""
    if len(packet) > FRAME_BYTES:
        raise ValueError(f"a message of {len(packet)} bytes; {FRAME_BYTES} fit")
    return len(packet).to_bytes(4, "big") + packet


class Frames:
    """Takes a connection's bytes as they come, and gives the packets in them."""

    def __init__(self) -> None:
        self._got = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The packets that are whole now. Raises ``ValueError`` for a length that can't be: give the connection up."""
        self._got += data
        found = []
        while len(self._got) >= 4:
            size = int.from_bytes(self._got[:4], "big")
            if not _HEAD_BYTES <= size <= FRAME_BYTES:
                raise ValueError(f"a frame of {size} bytes")
            if len(self._got) < 4 + size:
                break
            found.append(bytes(self._got[4 : 4 + size]))
            del self._got[: 4 + size]
        return found
