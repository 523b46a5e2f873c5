"""What a manager and a host's agent say to each other. Each may be lost, repeated, delayed or overtaken.

The manager speaks first, always: a host is asked, never reports by itself, so a fleet that comes back at once is
answered at the rate at which it is asked. A host's answer to anything is its state, so that an answer lost costs
nothing but another question. There is no "start" and no "stop": an order carries the host's whole set of instances.

Numbers that can't be are refused when a message is read, as if its seal were wrong: no array of a manager's and no
store holds them, so one host that has the key and has lost its wits would end its manager again and again.
"""

from typing import TypeAlias

from msgspec import Struct

from fencepost.core.capacity.token import Counted, Drawn, Token
from fencepost.core.instant import Duration


class Message(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """The base of all messages; ``host`` is the host's name, since many may answer at one address."""

    host: str


class Instance(Struct, frozen=True, gc=False, array_like=True):
    """One attempt to run an instance: the same ``id`` is never started twice, nowhere.

    ``id`` is "NAME.ATTEMPT" (``web-7.2`` is the second attempt at web-7); ``address`` the one it is to serve on, ""
    for none; ``port`` 0 for none; ``command`` the words of its driver's command, () where the driver needs none.
    """

    id: str
    pool: str = ""
    address: str = ""
    port: int = 0
    command: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The instance's name, without the attempt."""
        return self.id.rpartition(".")[0]

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return int(self.id.rpartition(".")[2])


class InstanceSet(Struct, frozen=True, gc=False, array_like=True):
    """All that one host is to run; versions of one host only rise."""

    version: Counted = 0
    instances: tuple[Instance, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        """The attempts in it."""
        return frozenset(instance.id for instance in self.instances)


class Check(Message, frozen=True, gc=False, array_like=True, tag=1):
    """Are you there, and what is your time? ``whole`` asks for the host's set as well."""

    token: Token
    whole: bool = False


class Order(Message, frozen=True, gc=False, array_like=True, tag=2):
    """The set to run. Obeyed only with the current token and a stamp of this boot that is younger than 3R.

    ``lasts`` is what the sender takes 3R for (0: what the host does): the shorter of the two counts, since managers and
    hosts don't learn of another R at the same moment (kubernetes #47671).
    """

    token: Token
    boot: Drawn
    stamp: Counted
    set: InstanceSet
    lasts: Duration = 0


class NetworkState(Struct, frozen=True, gc=False, array_like=True):
    """The network state of one instance, whole: an older version than the newest is worth nothing.

    ``digest`` (hex) is that of ``body``, the state itself in JSON.
    """

    id: str
    version: Counted
    digest: str
    body: bytes


class NetworkOrder(Message, frozen=True, gc=False, array_like=True, tag=3):
    """Network states of several of a host's instances. Obeyed only with the current token."""

    token: Token
    states: tuple[NetworkState, ...]


class Answer(Message, frozen=True, gc=False, array_like=True, tag=4):
    """A host's state, in answer to a check or an order that carried ``token``.

    ``boot`` is drawn at each start of the agent; ``stamp`` its own monotonic time, nanoseconds, suspended time counted;
    ``incarnation`` is born with the host's memory; ``version`` that of the set it holds. ``down`` are the attempts of
    that set that don't run and never will again. ``set`` is None unless asked for. ``causes`` says for people why each
    of ``down`` ended, in its order, "" where that isn't known; it may be left out.

    ``unable`` says why the host can't write its memory, "" if it can as far as it knows: it takes no order then, and no
    new token. ``refused`` are attempts of orders that it couldn't write down. This start of the agent (``boot``) never
    starts them, and no later one does once the memory could be written; about a later one that begins from the memory
    of before it says nothing.
    """

    token: Token
    boot: Drawn
    stamp: Counted
    incarnation: Drawn
    version: Counted
    down: tuple[str, ...] = ()
    set: InstanceSet | None = None
    causes: tuple[str, ...] = ()
    unable: str = ""
    refused: tuple[str, ...] = ()


class Newer(Message, frozen=True, gc=False, array_like=True, tag=5):
    """Refused: this host has met ``token``, which outdates the one it was sent."""

    token: Token


class NetworkAnswer(Message, frozen=True, gc=False, array_like=True, tag=6):
    """What became of each network state: (id, version, digest) as the host now has it; equal to what was sent if taken.

    ``unknown`` are ids that this host doesn't hold in its set (not yet, or no more).
    """

    boot: Drawn
    incarnation: Drawn
    has: tuple[tuple[str, int, str], ...]
    unknown: tuple[str, ...] = ()


ToHost: TypeAlias = Check | Order | NetworkOrder
FromHost: TypeAlias = Answer | Newer | NetworkAnswer
