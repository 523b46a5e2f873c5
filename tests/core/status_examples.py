"""A region at one moment, as facts: the sample, after three of its six targets died and one of them had to be kept."""

from pathlib import Path
from typing import Any

from msgspec import structs

from fencepost.core.fence import Generation, Marker
from fencepost.core.instant import Instant
from fencepost.core.record_set import Content, content
from fencepost.core.store import Head, Row
from fencepost.core.traffic.membership import Member, Membership, Move, Rule, State, Voter, Votes
from fencepost.core.zone import Live
from fencepost.ports import Beat, Enacted
from fencepost.roles.configuration import Loaded
from fencepost.roles.status.compose import compose
from fencepost.roles.status.document import Problem, Status, instant
from fencepost.roles.status.facts import DnsFacts, Facts, ObserverFacts, Process, StoreFacts
from fencepost.roles.status.promise_watch import WATCHED
from fencepost.settings import Region, load

SAMPLE = Path(__file__).parents[2] / "src/fencepost/dev/sample.toml"
API, WWW = "api.example.test", "www.example.test"
ADDRESSES = ("127.0.1.1", "127.0.1.2", "127.0.2.2", "127.0.3.2")
STORE = "beef" * 8


def at(clock: str) -> Instant:
    """A time of the example's day."""
    return instant(f"2026-11-29T{clock}Z")


NOW = at("20:05:04.120")
HEAD = Head(STORE, 9, "n9", 5)


def region() -> Region:
    return structs.replace(load(SAMPLE, {}), path="/etc/fencepost/region.toml", fleet=None)


def member(key: str, state: State = State.IN, **more: Any) -> Member:
    given = {"votes": Votes(3, 3), "healthy": True, "weight": 1, "served": True, "since": at("20:03:40")}
    return Member(key, "abc"[int(key.split(".")[2]) - 1], state, **{**given, **more})


def dead(key: str, state: State, since: Instant, rule: Rule) -> Member:
    return member(
        key,
        state,
        rule=rule,
        healthy=False,
        dead_since=since,
        since=since,
        flips=1,
        cause="connection refused",
        votes=Votes(0, 3),
        weight=1 if state is State.KEPT else 0,
    )


FIRST, SECOND_DEATH, KEPT_SINCE = at("20:04:11.204"), at("20:04:31.870"), at("20:04:33.102")
MEMBERS = (
    dead("127.0.1.1", State.KEPT, KEPT_SINCE, Rule.MAX_OUT),
    member("127.0.1.2"),
    dead("127.0.2.1", State.OUT, FIRST, Rule.FALL),
    member("127.0.2.2"),
    dead("127.0.3.1", State.OUT, SECOND_DEATH, Rule.FALL),
    member("127.0.3.2"),
)
MOVES = (
    Move(7, FIRST, "127.0.2.1", "b", State.IN, State.OUT, Rule.FALL, "connection refused", 1_000_000, 1_000_000),
    Move(8, SECOND_DEATH, "127.0.3.1", "c", State.IN, State.OUT, Rule.FALL, "connection refused", 1_000_000, 0),
    Move(9, KEPT_SINCE, "127.0.1.1", "a", State.IN, State.KEPT, Rule.MAX_OUT, "connection refused", 0, 0),
)
POOL = Membership(
    "web",
    9,
    members=MEMBERS,
    tokens=100_000,
    refilled_at=NOW,
    suspect="many dead",
    suspect_since=KEPT_SINCE,
    sick=500_000,
    voters=tuple(Voter(zone, "ok") for zone in "abc"),
    moves=MOVES,
    moved=9,
    revision=1,
)


def row(name: str, value: Content | None = None, number: int = 9, **more: Any) -> Row:
    value = value or content(ADDRESSES, 5)
    made = Row.of(name, Generation(0, number), value, more.pop("hold", None), families="4")
    return structs.replace(made, store=STORE[:4], nonce=f"n{number}", **more)


def live(planned: Row, writes: int = 1) -> Live:
    """What stands once a row is enacted."""
    marker = Marker.of("demo", planned.store, planned.generation, planned.content, planned.hold, writes)
    value = planned.content
    return Live(planned.name, marker, value.a, value.aaaa, value.ttl)


def beat(role: str, pid: int, **more: Any) -> Beat:
    given = {"version": "0.1.0", "state": "up", "error": "", "at": NOW - 400_000_000}
    return Beat(role, pid, **{**given, **more})


ROLES = ("planner", "janitor", *(f"{role}/{zone}" for role in ("checker", "enactor") for zone in "abc"))


def stored(**more: Any) -> StoreFacts:
    given: dict[str, Any] = {
        "at": NOW,
        "head": HEAD,
        "rows": {name: row(name) for name in (API, WWW)},
        "enacted": {
            API: Enacted(API, Generation(0, 9), "enactor/b", at("20:04:32.231"), 2),
            WWW: Enacted(WWW, Generation(0, 8), "enactor/a", at("20:04:11.231"), 1),
        },
        "loaded": Loaded(region(), 1, at("20:03:37")),
        "pools": {"web": POOL},
        "overrides": (),
        "orders": (),
        "findings": {},
        "beats": tuple(beat(role, 4100 + place) for place, role in enumerate(ROLES)),
        "fenced": 0,
    }
    return StoreFacts(**{**given, **more})


def facts(**more: Any) -> Facts:
    """The example; anything may be replaced."""
    given: dict[str, Any] = {
        "region": region(),
        "now": NOW,
        "source": "api",
        "store": stored(),
        "dns": DnsFacts(NOW, {API: live(row(API), 2), WWW: live(row(WWW))}),
        "observer": ObserverFacts(
            NOW, dict.fromkeys(WATCHED, 4812), dict.fromkeys(WATCHED, 0), (), {API: 64_000_000, WWW: 0}, {}, 4812, 0, 0
        ),
        "processes": {
            **{role: Process(4100 + place, int(role == "enactor/b")) for place, role in enumerate(ROLES)},
            "target/127.0.2.1": Process(None, 3),
        },
        "folder": "/tmp/demo",
    }
    return Facts(**{**given, **more})


def made(**more: Any) -> Status:
    return compose(facts(**more))


def problems(status: Status) -> dict[tuple[str, str], Problem]:
    return {(each.id, each.on): each for each in status.problems}


def ids(status: Status) -> list[str]:
    return sorted({each.id for each in status.problems})
