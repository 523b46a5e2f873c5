"""A manager's questions to its hosts: checks by datagram, orders and whole sets by connection, and the answers to both.

A check is one datagram each way and keeps no state here: what comes back names host and token, and is judged by these.
Only so much is kept that an old answer, sent again by somebody who has heard it go by, renews nothing: all checks of a
while carry the same drawn number, which the answer repeats; it counts in that while and the next. Whatever doesn't come
back is admission's to notice. Orders and whole sets wait in a line, so many at once; one that isn't answered in time is
let go, for the next check shows what became of it.
"""

import asyncio
import logging
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fencepost.core.capacity.host_table import HostTable
from fencepost.core.capacity.lease_calls import Answered, Ids, Outdated, SendOrders
from fencepost.core.capacity.messages import ToHost
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.ports import PortError
from fencepost.roles.fleet.asking import Place, ask
from fencepost.roles.fleet.manager_hands import ManagerHands
from fencepost.roles.fleet.wire import DATAGRAM_BYTES, Wire
from fencepost.roles.loop import Condition

log = logging.getLogger(__name__)

AT_ONCE = 64
"""So many connections at a time."""
ANSWER_S, ANSWER_LEAST_S = 3.0, 0.25
"""So long an answer over a connection is waited for, or a renewal if that is shorter: sixty-four hosts that take
connections and never answer must not keep the others' sets from them for a whole lease (kubernetes #44887)."""
RECEIVE_BYTES = 1 << 22
"""What may wait in the socket while decisions are made: answers of thousands of hosts."""
A_ROUND = 4096
"""So many datagrams are read before other tasks get their turn."""


def clock() -> Instant:
    """This machine's time since it was started, suspended time counted."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Questions:
    """The sockets of one manager. What is answered goes into its book.

    ``pressing``: one of them came over a connection, or there is more to be read: somebody may wait for it. Datagrams
    stay in their socket until they are heard, or the loop would turn once for each of them. ``stale`` counts answers
    to questions of long ago.
    """

    def __init__(
        self, wire: Wire, condition: Condition, draw: Callable[[], int] = lambda: secrets.randbits(64)
    ) -> None:
        self.wire = wire
        self.condition = condition
        self._hands: ManagerHands | None = None
        self._sockets: dict[int, socket.socket] = {}
        self._long: deque[tuple[Place, ToHost]] = deque()
        self._wanted = asyncio.Event()
        self._turn = 0
        self._full: dict[socket.socket, None] = {}
        self.pressing = False
        self.stale = 0
        self._draw = draw
        self._while: Duration = 0
        self._drawn_at: Instant = 0
        self._numbers = (draw(), draw())

    def begin(self, hands: ManagerHands, renew: Duration) -> None:
        """Answers are matched to the hosts in these hands' table. No call takes longer than ``renew``."""
        self._hands = hands
        self._while = renew

    @property
    def patience_s(self) -> float:
        """How long an answer over a connection is waited for, seconds."""
        return max(ANSWER_LEAST_S, min(ANSWER_S, self._while / SECOND))

    def numbered(self, at: Instant) -> int:
        """The number that checks carry now: another one each R, so that an answer counts for at least R.

        Drawn only when something is asked: who was stopped for ten minutes still hears what lies in the inbox.
        """
        if at - self._drawn_at >= self._while:
            before = self._numbers[0] if at - self._drawn_at < 2 * self._while else self._draw()
            self._numbers, self._drawn_at = (self._draw(), before), at
        return self._numbers[0]

    @property
    def hands(self) -> ManagerHands:
        """Whose questions these are."""
        if self._hands is None:
            raise RuntimeError("questions begin with the manager's hands")
        return self._hands

    def forget(self) -> None:
        """What is under way counts for nothing any more."""
        self._turn += 1
        self._long.clear()

    # Out.

    def check(
        self,
        table: HostTable,
        epoch: int,
        ids: Ids,
        number: NDArray[np.int64],
        nonce: NDArray[np.uint64],
        *,
        whole: bool,
    ) -> None:
        """Ask these hosts how they are, each with its present token."""
        request = self.numbered(clock())
        for id_, check in table.checks(epoch, ids, number, nonce, whole=whole):
            if whole:
                self._later(table.place(id_), check)
            else:
                self._send(table.place(id_), check, request)

    def order(self, table: HostTable, epoch: int, effect: SendOrders, lasts: Duration) -> None:
        """Send these hosts the sets of their rows, as just proven, with the stamps that the proofs came after.

        ``lasts`` is three renewals.
        """
        for id_, order in table.orders(epoch, effect, lasts):
            self._later(table.place(id_), order)

    def _send(self, place: Place, message: ToHost, request: int) -> None:
        family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        try:
            self._socket(family).sendto(self.wire.pack("to host", request, message, DATAGRAM_BYTES), place)
        except OSError as error:
            # As good as lost on the way: admission notices that no answer comes.
            log.debug("check of %s: %s", message.host, error)

    def _socket(self, family: int) -> socket.socket:
        made = self._sockets.get(family)
        if made is None:
            made = self._sockets[family] = socket.socket(family, socket.SOCK_DGRAM)
            made.setblocking(False)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
            made.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", 0))  # noqa: S104  hosts are anywhere
            asyncio.get_running_loop().add_reader(made.fileno(), self._receive, made)
        return made

    def _later(self, place: Place, message: ToHost) -> None:
        self._long.append((place, message))
        self._wanted.set()

    async def run(self) -> None:
        """Serve the line of connections until cancelled, then close the sockets."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(self._serve())
        finally:
            for each in self._sockets.values():
                asyncio.get_running_loop().remove_reader(each.fileno())
                each.close()
            self._sockets.clear()
            self._full.clear()

    async def _serve(self) -> None:
        while True:
            while not self._long:
                self._wanted.clear()
                await self._wanted.wait()
            place, message = self._long.popleft()
            turn = self._turn
            try:
                answer = await ask(self.wire, place, message, self.patience_s)
            except PortError as error:
                log.debug("%s", error.in_full)
                continue
            if turn == self._turn:
                self.hands.book.hear(answer)
                self.pressing = True
                self.hands.arrived.set()

    # In.

    def _receive(self, from_: socket.socket) -> None:
        """There is something in this socket: it is read when the manager hears."""
        asyncio.get_running_loop().remove_reader(from_.fileno())
        self._full[from_] = None
        self.hands.arrived.set()

    def _read(self, from_: socket.socket) -> None:
        """Read what has come, and wait for more; if that is a round's fill, there is more already."""
        opened, receive, take = self.wire.open_from_host, from_.recv, self.hands.book.hear
        numbers = self._numbers
        for _ in range(A_ROUND):
            try:
                data = receive(DATAGRAM_BYTES + 1)
            except OSError:
                break
            found = opened(data)
            if found is None:
                continue
            if found[0] in numbers:
                take(found[1])
            else:
                self.stale += 1
        else:
            self.pressing = True
            return
        del self._full[from_]
        asyncio.get_running_loop().add_reader(from_.fileno(), self._receive, from_)

    def heard(self) -> tuple[Answered | None, Sequence[Outdated]]:
        """All answers and refusals since the last call, as the decider is told of them.

        Of several answers of one host in a row the last one counts.
        """
        self.pressing = False
        for each in list(self._full):
            self._read(each)
        return self.hands.book.heard()
