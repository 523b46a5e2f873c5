"""How managers and agents put messages on the wire: sealed with the fleet's key, as datagrams or on connections.

    datagram     seal (16 bytes) | request (8 bytes) | message (msgpack)          at most 1,200 bytes
    connection   length (4 bytes, big endian) | the same                          at most 1 MiB a message

The seal is a keyed BLAKE2b (RFC 7693) of request and message, one for each direction, so that nothing can be turned
round. An answer carries the request it answers. What has no good seal is dropped without a word: an answer would tell a
stranger that somebody is here, and lend him an amplifier. Replays need no guard of their own on a host: a check
repeated renews nothing there, and an order is obeyed by its token, stamp and version, whenever it comes. On a manager
an answer renews a lease, so it counts only with a request of its own, and of late.
"""

from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Literal

import msgspec

from fencepost.core.capacity.messages import FromHost, ToHost

DATAGRAM_BYTES = 1200
"""What every network takes in one piece."""
FRAME_BYTES = 1 << 20
KEY_BYTES = 32
_SEAL = 16
_HEAD = _SEAL + 8
_encode = msgspec.msgpack.Encoder().encode
_to_host = msgspec.msgpack.Decoder(ToHost)
_from_host = msgspec.msgpack.Decoder(FromHost)
Direction = Literal["to host", "from host"]


class TooLong(ValueError):  # noqa: N818  what it says of the message
    """A message that doesn't fit where it was to go."""


class Wire:
    """Seals and opens with one key. ``dropped`` counts what was no message of ours."""

    def __init__(self, key: bytes) -> None:
        """Raises ``ValueError`` for a key that is none."""
        if len(key) < 16:
            raise ValueError("a fleet's key has at least 16 bytes")
        self._seals = {
            "to host": blake2b(key=key[:64], digest_size=_SEAL, person=b"fencepost-to"),
            "from host": blake2b(key=key[:64], digest_size=_SEAL, person=b"fencepost-from"),
        }
        self.dropped = 0

    def _seal(self, direction: Direction, body: bytes) -> bytes:
        state = self._seals[direction].copy()
        state.update(body)
        return state.digest()

    def pack(self, direction: Direction, request: int, message: ToHost | FromHost, most: int) -> bytes:
        """A message as sealed bytes. Raises ``TooLong`` for more than ``most``."""
        body = request.to_bytes(8, "big") + _encode(message)
        if len(body) + _SEAL > most:
            raise TooLong(f"{type(message).__name__} for {message.host} takes {len(body) + _SEAL} bytes of {most}")
        return self._seal(direction, body) + body

    def _open(self, direction: Direction, data: bytes, decoder: msgspec.msgpack.Decoder[Any]) -> Any | None:
        if len(data) > _HEAD and compare_digest(self._seal(direction, data[_SEAL:]), data[:_SEAL]):
            try:
                return int.from_bytes(data[_SEAL:_HEAD], "big"), decoder.decode(data[_HEAD:])
            except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
                pass
        self.dropped += 1
        return None

    def open_to_host(self, data: bytes) -> tuple[int, ToHost] | None:
        """What a manager says, with its request; None (and counted) for anything else."""
        return self._open("to host", data, _to_host)

    def open_from_host(self, data: bytes) -> tuple[int, FromHost] | None:
        """What a host says, with the request it answers; None (and counted) for anything else."""
        return self._open("from host", data, _from_host)


def framed(packet: bytes) -> bytes:
    """A packet as it goes over a connection."""
    return len(packet).to_bytes(4, "big") + packet


class Frames:
    """Takes a connection's bytes as they come, and gives the packets in them."""

    def __init__(self) -> None:
        self._got = bytearray()

    @property
    def size(self) -> int:
        """How much is there of a packet that isn't whole yet."""
        return len(self._got)

    def feed(self, data: bytes) -> list[bytes]:
        """The packets that are whole now. Raises ``TooLong`` for a length that can't be: give the connection up."""
        self._got += data
        found = []
        while len(self._got) >= 4:
            size = int.from_bytes(self._got[:4], "big")
            if not _HEAD < size <= FRAME_BYTES:
                raise TooLong(f"a frame of {size} bytes")
            if len(self._got) < 4 + size:
                break
            found.append(bytes(self._got[4 : 4 + size]))
            del self._got[: 4 + size]
        return found
