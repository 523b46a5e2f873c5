"""The observer's judgement: what is a broken promise, what was another writer, and what says nothing at all."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from journals import Journal
from msgspec import structs

from fencepost.core.fence import Foreign, Generation, Hold, Marker
from fencepost.core.instant import SECOND
from fencepost.core.record_set import NOTHING, Content, content
from fencepost.core.store import Row
from fencepost.core.zone import Live
from fencepost.roles.status.promise_watch import WATCHED, PromiseWatch, Seen, Watched

NAME = "api.example.test"
OLD, NEW = content(("192.0.2.1", "192.0.2.2"), 5), content(("192.0.2.2", "192.0.2.3"), 5)
BOTH = content(("192.0.2.1", "2001:db8::1"), 5)
START = 1_800_000_000 * SECOND


def enacted(number: int, value: Content, *, epoch: int = 0, hold: Hold | None = None, writes: int = 1) -> Live:
    marker = Marker.of("demo", "beef", Generation(epoch, number), value, hold, writes)
    return Live(NAME, marker, value.a, value.aaaa, value.ttl if not value.empty else 0)


def seen(live: Live, before: Any = "same") -> Seen:
    return Seen(live.marker if before == "same" else before, live.a, live.aaaa, live.ttl, live.marker)


def row(live: Live, **more: Any) -> Row:
    assert isinstance(live.marker, Marker)
    value = live.content()
    families = more.pop("families", ("4" if value.a else "") + ("6" if value.aaaa else ""))
    made = Row.of(NAME, live.marker.generation, value, live.marker.hold, families=families)
    return structs.replace(made, **more)


class Observing:
    """A watch that is shown one endpoint after the other."""

    def __init__(self, families: str = "4") -> None:
        self.watch = PromiseWatch("demo")
        self.endpoint = Watched(NAME, families)
        self.now = START
        self.journal = Journal(NAME)

    def look(self, live: Live, known: Row | None = None, before: Any = "same", after_s: float = 1.0) -> bool:
        """What is seen is what happened, each time in one transaction."""
        self.journal.add(live)
        return self.glance(live, known, before, after_s)

    def glance(self, live: Live, known: Row | None = None, before: Any = "same", after_s: float = 1.0) -> bool:
        """A look; what happened is in the journal already."""
        self.now += int(after_s * SECOND)
        endpoint = structs.replace(self.endpoint, row=known)
        again = self.watch.observe(endpoint, seen(live, before), self.now, self.journal.serial)
        self.journal.testify(self.watch)
        return again

    def broken(self) -> list[str]:
        return [name for name in WATCHED if self.watch.broken[name]]

    def emptied_s(self) -> float:
        return self.watch.emptied_ns(NAME, self.now) / SECOND


def test_a_quiet_endpoint_is_checked_at_each_look_and_breaks_nothing() -> None:
    """Each promise has a "sometimes" partner: it counts how often it could have failed."""
    observing = Observing()
    for _ in range(5):
        assert not observing.look(enacted(1, OLD))
    assert observing.broken() == []
    assert observing.watch.checked["never_empty"] == observing.watch.checked["never_torn"] == 5
    assert observing.watch.checked["never_backward"] == 5
    assert observing.watch.checked["hold_stands"] == 0, "there was no hold that could have fallen"


def test_an_own_plan_without_addresses_breaks_never_empty() -> None:
    """October 2025, step 4: the automation itself left the endpoint without an address. The digest says who did."""
    observing = Observing()
    observing.look(enacted(1, OLD))
    observing.look(enacted(2, Content((), (), (), 0)))
    observing.look(enacted(2, Content((), (), (), 0)))
    assert observing.broken() == ["never_empty"]
    assert observing.watch.broken["never_empty"] == 1, "told once, however long it lasts"
    assert observing.watch.violations[0].on == NAME


def test_an_own_plan_without_a_family_that_was_published_breaks_never_empty() -> None:
    """The promise is by family: an AAAA that is gone is an empty answer to who asks for AAAA."""
    observing = Observing("46")
    observing.look(enacted(1, BOTH))
    observing.look(enacted(2, OLD))
    assert observing.broken() == ["never_empty"]


def test_a_family_that_the_row_gave_up_is_not_missed() -> None:
    """Its owner took AAAA out of the endpoint's records, and the row of that plan says so."""
    observing = Observing("46")
    observing.look(enacted(1, BOTH))
    observing.look(enacted(2, OLD), row(enacted(2, OLD), families="4"))
    assert observing.broken() == []


def test_a_family_only_just_asked_for_is_not_missed() -> None:
    """Nothing was ever published there: without a row, an unanswered family may simply be new."""
    observing = Observing("46")
    observing.look(enacted(1, OLD))
    assert observing.broken() == []
    assert observing.emptied_s() == 0


def test_records_taken_away_under_their_marker_are_counted_apart() -> None:
    """The marker still names the generation whose records are gone: another writer emptied it."""
    observing = Observing()
    whole = enacted(1, OLD)
    observing.look(whole)
    assert observing.look(structs.replace(whole, a=(), ttl=0)), "looked at again soon"
    observing.look(structs.replace(whole, a=(), ttl=0), after_s=0.02)
    observing.look(enacted(1, OLD, writes=2), after_s=0.02)
    assert observing.broken() == []
    assert round(observing.emptied_s(), 3) == 0.04


def test_an_endpoint_wiped_whole_is_counted_apart() -> None:
    """Our writers never take a marker away."""
    observing = Observing()
    observing.look(enacted(1, OLD))
    observing.look(Live(NAME))
    observing.look(Live(NAME))
    assert observing.broken() == []
    assert observing.emptied_s() == 1
    observing.look(enacted(1, OLD))
    assert observing.emptied_s() == 2


def test_a_withdrawn_endpoint_may_be_empty() -> None:
    """Only the owner's withdrawal takes an endpoint away; it leaves a tombstone."""
    observing = Observing()
    observing.look(enacted(1, OLD))
    observing.look(enacted(2, NOTHING, epoch=9, hold=Hold("withdraw", 9)))
    observing.look(Live(NAME))
    assert observing.broken() == []
    assert observing.emptied_s() == 0


def test_an_older_generation_after_a_newer_breaks_never_backward() -> None:
    """October 2025, step 3: an old plan was put over a newer one."""
    observing = Observing()
    observing.look(enacted(2, NEW))
    observing.look(enacted(1, OLD))
    assert observing.broken() == ["never_backward"]


def test_the_memory_falls_with_the_last_that_remembers() -> None:
    """Marker and records were destroyed and the store holds an older row: nothing remembers generation 2 any more."""
    observing = Observing()
    observing.look(enacted(2, NEW))
    observing.look(Live(NAME), row(enacted(1, OLD)))
    observing.look(enacted(1, OLD))
    assert observing.broken() == []


def test_an_earlier_set_beside_a_later_marker_breaks_never_torn() -> None:
    """The marker was written and the records weren't: a caller sees two plans at once."""
    observing = Observing()
    observing.look(enacted(1, OLD))
    observing.look(structs.replace(enacted(2, NEW), a=OLD.a))
    assert observing.broken() == ["never_torn"]


def test_a_later_set_beside_an_earlier_marker_can_not_be_told_once_its_marker_comes() -> None:
    """Records first, marker second: a torn write, or a person's correction that a plan or a repair then makes last."""
    observing = Observing()
    observing.look(enacted(1, OLD))
    observing.look(structs.replace(enacted(1, OLD), a=NEW.a))
    assert observing.broken() == []
    observing.look(enacted(2, NEW), after_s=0.02)
    assert (observing.broken(), observing.watch.unsure["never_torn"]) == ([], 1)


def test_two_families_of_two_generations_break_never_torn() -> None:
    """A and AAAA are one set."""
    six = content(("192.0.2.9", "2001:db8::9"), 5)
    observing = Observing("46")
    observing.look(enacted(1, BOTH))
    observing.look(enacted(2, six))
    observing.look(structs.replace(enacted(3, content(("192.0.2.7", "2001:db8::7"), 5)), a=BOTH.a, aaaa=six.aaaa))
    assert observing.broken() == ["never_torn"]


def test_records_altered_by_hand_are_no_torn_write() -> None:
    """Addresses that no plan of ours had, under a marker that stood before, are another's; they are healed."""
    observing = Observing()
    observing.look(enacted(1, OLD))
    assert observing.look(structs.replace(enacted(1, OLD), a=("203.0.113.9",)))
    observing.look(enacted(1, OLD, writes=2), after_s=0.02)
    assert observing.broken() == []
    assert observing.watch.altered == 1


def test_a_marker_that_moves_during_a_look_decides_nothing() -> None:
    """Addresses between two different readings of the marker belong to either; only agreeing readings count."""
    observing = Observing()
    observing.look(enacted(1, OLD))
    assert observing.look(structs.replace(enacted(2, NEW), a=OLD.a), before=enacted(1, OLD).marker)
    assert observing.broken() == []
    assert observing.watch.looks == 1


def test_a_weighted_answer_is_a_part_of_the_set() -> None:
    """The server draws addresses by weight; whatever it draws is of the marker's content, and at least one."""
    value = content({"192.0.2.1": 10, "192.0.2.2": 1}, 5)
    observing = Observing()
    observing.look(structs.replace(enacted(1, value), a=("192.0.2.1",)))
    observing.look(structs.replace(enacted(1, value), a=("192.0.2.1", "192.0.2.2")))
    assert observing.broken() == []
    assert observing.watch.altered == 0
    observing.look(structs.replace(enacted(1, value), a=("192.0.2.1", "192.0.2.8")))
    assert observing.watch.altered == 1


def test_a_hold_that_vanishes_without_release_breaks_hold_stands() -> None:
    """The planner's plan undid a person's repair. The row that came after it says that nobody released it."""
    repair = enacted(1, OLD, epoch=9, hold=Hold("repair", 9))
    undone = enacted(2, NEW, epoch=9)
    observing = Observing()
    observing.look(repair)
    observing.look(undone, row(repair))
    assert observing.broken() == [], "the row is older than what is live: not known yet"
    observing.look(undone, row(undone, released=0))
    assert observing.broken() == ["hold_stands"]


def test_a_hold_may_end_by_release_time_or_a_later_hold() -> None:
    """Each of the three ways in which a hold ends."""
    undone = enacted(2, NEW, epoch=9)
    for hold, after, known in (
        (Hold("repair", 9), undone, row(undone, released=9)),
        (Hold("rollback", 9, until_s=START // SECOND + 2), undone, row(undone)),
        (Hold("repair", 9), enacted(2, NEW, epoch=12, hold=Hold("rollback", 12)), None),
    ):
        observing = Observing()
        observing.look(enacted(1, OLD, epoch=9, hold=hold))
        observing.look(after, known)
        observing.look(after, known)
        assert observing.broken() == []


def test_what_belongs_to_others_is_not_judged() -> None:
    """Another owner's marker, or something that is no marker: not our promises."""
    observing = Observing()
    for marker in (Foreign("", ((b"hello",),)), Marker("eu-2", "aaaa", Generation(0, 1), "0" * 16)):
        assert not observing.look(Live(NAME, marker))
    assert observing.broken() == []
    assert observing.watch.checked["never_empty"] == 0


def test_an_endpoint_never_published_is_not_empty() -> None:
    """Before its first plan there is nothing to miss."""
    observing = Observing()
    assert not observing.look(Live(NAME))
    assert observing.watch.checked["never_empty"] == 0
    assert observing.emptied_s() == 0


def test_endpoints_nobody_watches_are_forgotten() -> None:
    """What is remembered is bounded by what is watched."""
    observing = Observing()
    observing.look(enacted(1, OLD))
    observing.watch.forget_but(frozenset())
    assert observing.watch.past == {}


POOL = [f"192.0.2.{last}" for last in range(1, 9)]
STRANGERS = [f"203.0.113.{last}" for last in range(1, 4)]
SETS = st.dictionaries(st.sampled_from(POOL), st.integers(1, 3), min_size=1, max_size=4)
STEPS = st.one_of(
    st.tuples(st.just("plan"), SETS),
    st.tuples(st.just("hold"), SETS),
    st.tuples(st.just("release"), SETS),
    st.tuples(st.just("withdraw"), st.none()),
    st.tuples(st.just("emptied"), st.none()),
    st.tuples(st.just("altered"), st.lists(st.sampled_from(STRANGERS), min_size=1, unique=True)),
    st.tuples(st.just("unmarked"), st.none()),
    st.tuples(st.just("heal"), st.none()),
    st.tuples(st.just("look"), st.integers(0, 2**8 - 1)),
)


class Honest:
    """Writers that keep every promise, and somebody else's careless hand beside them."""

    def __init__(self) -> None:
        self.newest = enacted(1, OLD)
        self.row = row(self.newest)
        self.live = self.newest
        self.number, self.epoch = 1, 0

    def step(self, what: str, given: Any) -> None:
        marker = self.newest.marker
        assert isinstance(marker, Marker)
        if what in ("plan", "release", "hold", "withdraw"):
            self.number += 1
            hold, released = marker.hold, self.row.released
            if what in ("hold", "withdraw"):
                self.epoch += 1
                hold = Hold("repair" if what == "hold" else "withdraw", self.epoch)
            elif what == "release":
                released, hold = self.epoch, None
            value = NOTHING if what == "withdraw" else content(given, 5)
            if what == "plan" and hold is not None:
                value = self.row.content
            self.newest = self.live = enacted(self.number, value, epoch=self.epoch, hold=hold)
            made = row(self.newest, families="" if value.empty else "4")
            self.row = structs.replace(made, content=value, released=released)
        elif what == "emptied":
            self.live = structs.replace(self.live, a=(), ttl=0)
        elif what == "altered":
            self.live = structs.replace(self.live, a=tuple(sorted(given)), ttl=5)
        elif what == "unmarked":
            self.live = structs.replace(self.live, marker=None)
        elif what == "heal" and self.live != self.newest:
            again = self.live.marker.writes + 1 if isinstance(self.live.marker, Marker) else 1
            self.newest = self.live = structs.replace(self.newest, marker=structs.replace(marker, writes=again))

    def answer(self, chance: int) -> Live:
        """What a query gets: of a weighted set, one draw."""
        marker = self.live.marker
        weighted = isinstance(marker, Marker) and marker.content is not None and marker.content.weights
        if not weighted or not self.live.a:
            return self.live
        drawn = tuple(address for place, address in enumerate(self.live.a) if chance >> place & 1)
        return structs.replace(self.live, a=drawn or self.live.a[:1])


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=30))
def test_honest_writers_are_never_accused(steps: list[tuple[str, Any]]) -> None:
    """Whatever others do to the records, and whenever one looks: no promise is called broken that was kept."""
    world, observing = Honest(), Observing()
    observing.journal.add(world.live)
    for what, given_ in [*steps, ("look", 0)]:
        if what != "look":
            before = world.live.marker
            world.step(what, given_)
            observing.journal.add(world.live)
            if world.live.marker != before and world.number % 3 == 0:
                observing.glance(world.answer(1), world.row, before=before, after_s=0.01)
            continue
        observing.glance(world.answer(given_), world.row, after_s=0.1)
    assert observing.watch.violations == []


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=12), st.sampled_from(["empty", "backward", "torn"]))
def test_dishonest_writers_are_always_found_out(steps: list[tuple[str, Any]], crime: str) -> None:
    """After any history: a published empty set, an older generation, or two plans at once is seen at the next look."""
    world, observing = Honest(), Observing()
    observing.journal.add(world.live)
    for what, given_ in [*steps, ("release", {"192.0.2.1": 1}), ("look", 0), ("plan", {"192.0.2.2": 1}), ("look", 0)]:
        if what == "look":
            observing.glance(world.answer(given_), world.row)
        else:
            world.step(what, given_)
            observing.journal.add(world.live)
    number, epoch = world.number, world.epoch
    if crime == "empty":
        observing.look(enacted(number + 1, Content((), (), (), 0), epoch=epoch))
    elif crime == "backward":
        observing.look(enacted(number - 1, content(["192.0.2.1"], 5), epoch=epoch))
    else:
        observing.look(structs.replace(enacted(number + 1, content(["192.0.2.7"], 5), epoch=epoch), a=("192.0.2.1",)))
    assert observing.broken() == [f"never_{crime}"]
