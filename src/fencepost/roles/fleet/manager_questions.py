"""A manager's questions to its hosts: checks by datagram, orders and whole sets by connection, and the answers to both.

A check is one datagram each way and keeps no state here: what comes back names host and token, and is judged by these.
Whatever doesn't come back is admission's to notice. Orders and whole sets wait in a line, so many at once; one that
isn't answered in time is let go, for the next check shows what became of it.
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fencepost.core.capacity.lease_calls import Answered, Ids, Outdated, SendOrders
from fencepost.core.capacity.messages import Answer, Check, FromHost, Newer, Order, ToHost
from fencepost.core.capacity.token import Token
from fencepost.core.instant import Duration
from fencepost.ports import PortError
from fencepost.roles.fleet.asking import Place, ask
from fencepost.roles.fleet.host_table import HostTable
from fencepost.roles.fleet.manager_hands import ManagerHands
from fencepost.roles.fleet.wire import DATAGRAM_BYTES, Wire
from fencepost.roles.loop import Condition

log = logging.getLogger(__name__)

AT_ONCE = 64
"""So many connections at a time."""
ANSWER_S = 3.0
RECEIVE_BYTES = 1 << 22
"""What may wait in the socket while decisions are made: answers of thousands of hosts."""
A_ROUND = 4096
"""So many datagrams are read before other tasks get their turn."""


class Questions:
    """The sockets of one manager. ``answers`` are those not yet heard, with the host's number.

    ``pressing``: one of them came over a connection, or there is more to be read: somebody may wait for it. Datagrams
    stay in their socket until they are heard, or the loop would turn once for each of them.
    """

    def __init__(self, wire: Wire, condition: Condition) -> None:
        self.wire = wire
        self.condition = condition
        self.answers: list[tuple[int, Answer]] = []
        self.refusals: list[Outdated] = []
        self._hands: ManagerHands | None = None
        self._sockets: dict[int, socket.socket] = {}
        self._long: deque[tuple[Place, ToHost]] = deque()
        self._wanted = asyncio.Event()
        self._turn = 0
        self._full: dict[socket.socket, None] = {}
        self.pressing = False

    def begin(self, hands: ManagerHands) -> None:
        """Answers are matched to the hosts in these hands' table."""
        self._hands = hands

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
        self.answers.clear()
        self.refusals.clear()

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
        for id_, n, drawn in zip(ids.tolist(), number[ids].tolist(), nonce[ids].tolist(), strict=True):
            check = Check(table.names[id_], Token(epoch, n, drawn), whole)
            if whole:
                self._later(table.place(id_), check)
            else:
                self._send(table.place(id_), check)

    def order(self, table: HostTable, epoch: int, effect: SendOrders, lasts: Duration) -> None:
        """Send these hosts the sets of their rows, as just proven, with the stamps that the proofs came after.

        ``lasts`` is three renewals.
        """
        for id_, boot, stamp in zip(effect.ids.tolist(), effect.boot.tolist(), effect.stamp.tolist(), strict=True):
            row = table.row(id_)
            token = Token(epoch, row.number, row.nonce)
            self._later(table.place(id_), Order(row.host, token, boot, stamp, row.set, lasts))

    def _send(self, place: Place, message: ToHost) -> None:
        family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        try:
            self._socket(family).sendto(self.wire.pack("to host", 0, message, DATAGRAM_BYTES), place)
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
                answer = await ask(self.wire, place, message, ANSWER_S)
            except PortError as error:
                log.debug("%s", error.in_full)
                continue
            if turn == self._turn:
                self._take(answer)
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
        opened, receive, take = self.wire.open_from_host, from_.recv, self._take
        for _ in range(A_ROUND):
            try:
                data = receive(DATAGRAM_BYTES + 1)
            except OSError:
                break
            found = opened(data)
            if found is not None:
                take(found[1])
        else:
            self.pressing = True
            return
        del self._full[from_]
        asyncio.get_running_loop().add_reader(from_.fileno(), self._receive, from_)

    def _take(self, answer: FromHost) -> None:
        table = self.hands.table
        number = table.numbers.get(answer.host)
        if number is None:
            return
        match answer:
            case Answer():
                if answer.set is not None:
                    table.told[number] = answer.set
                if answer.down:
                    table.down[number] = (answer.version, answer.down)
                elif table.down:
                    table.down.pop(number, None)
                self.answers.append((number, answer))
            case Newer(token=token):
                self.refusals.append(Outdated(number, token.epoch, token.number, token.nonce))

    def heard(self) -> tuple[Answered | None, Sequence[Outdated]]:
        """All answers and refusals since the last call, as the decider is told of them.

        Of several answers of one host in a row the last one counts.
        """
        self.pressing = False
        for each in list(self._full):
            self._read(each)
        refused, self.refusals = self.refusals, []
        if not self.answers:
            return None, refused
        last = dict(self.answers)
        self.answers = []
        answers = list(last.values())
        told = self.hands.table.told

        return (
            Answered(
                np.array(list(last), np.int64),
                np.array([each.token.epoch for each in answers], np.int64),
                np.array([each.token.number for each in answers], np.int64),
                np.array([each.token.nonce for each in answers], np.uint64),
                np.array([each.boot for each in answers], np.uint64),
                np.array([each.stamp for each in answers], np.int64),
                np.array([each.incarnation for each in answers], np.uint64),
                np.array([each.version for each in answers], np.int64),
                np.array([number in told and told[number].version == each.version for number, each in last.items()]),
            ),
            refused,
        )
