"""A promise that looks broken, judged by the DNS server's own account of what happened between two looks (RFC 1995)."""

from itertools import pairwise
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from journals import Journal, difference
from msgspec import structs

from fencepost.core.differences import Difference, Records, done, states, undone
from fencepost.core.fence import Foreign, Generation, Hold, Marker
from fencepost.core.instant import SECOND
from fencepost.core.record_set import Content, content
from fencepost.core.store import Row
from fencepost.core.zone import Live
from fencepost.roles.status.promise_watch import WATCHED, PromiseWatch, Seen, Watched

NAME = "api.example.test"
START = 1_800_000_000 * SECOND
SETS = [content([f"192.0.2.{n}" for n in numbers], 5) for numbers in ((1, 2), (2, 3), (4,), (5, 6, 7))]
STRANGER = ("203.0.113.9",)


def enacted(generation: Generation, value: Content, hold: Hold | None = None, writes: int = 1) -> Live:
    marker = Marker.of("demo", "beef", generation, value, hold, writes)
    return Live(NAME, marker, value.a, value.aaaa, value.ttl)


class World:
    """A planner, an enactor, a person and a careless hand at one endpoint; each transaction goes into the journal."""

    def __init__(self) -> None:
        self.journal = Journal(NAME)
        self.live = Live(NAME)
        self.rows: list[Row] = []
        self.epoch = 0
        self.read: tuple[Row, Live] | None = None
        self.publish(Generation(0, 1), SETS[0], None)
        self.enact()

    @property
    def row(self) -> Row:
        return self.rows[-1]

    def write(self, live: Live) -> None:
        self.live = live
        self.journal.add(live)

    def publish(self, generation: Generation, value: Content, hold: Hold | None, released: int = 0) -> None:
        made = Row.of(NAME, generation, value, hold, families="4")
        before = self.rows[-1].released if self.rows else 0
        self.rows.append(structs.replace(made, content=value, released=max(before, released)))

    def plan(self, place: int) -> None:
        """The planner adopts what is above its rows, else plans; a hold keeps its content."""
        row, marker = self.row, self.live.marker
        epoch, number = row.generation.epoch, row.generation.number
        if isinstance(marker, Marker) and marker.generation > row.generation:
            epoch, number = max(epoch, marker.generation.epoch), max(number, marker.generation.number)
            if marker.content is not None:
                self.publish(Generation(epoch, number + 1), marker.content, marker.hold)
                return
        value = row.content if row.hold is not None else SETS[place]
        self.publish(Generation(epoch, number + 1), value, row.hold)

    def late(self, place: int) -> None:
        """A planner that read earlier publishes now: the same head, another DNS."""
        if self.read is None or self.read[0] is not self.row:
            self.read = (self.row, self.live)
            return
        now, self.live = self.live, self.read[1]
        self.plan(place)
        self.live, self.read = now, None

    def release(self, place: int) -> None:
        if self.row.hold is not None:
            generation = self.row.generation
            after = Generation(generation.epoch, generation.number + 1)
            self.publish(after, SETS[place], None, self.row.hold.id)

    def repair(self, place: int) -> None:
        marker = self.live.marker
        if isinstance(marker, Foreign):
            return
        stands = marker.generation if marker is not None else self.row.generation
        self.epoch = max(self.epoch, stands.epoch, self.row.generation.epoch) + 1
        number = max(stands.number, self.row.generation.number) + 1
        self.write(enacted(Generation(self.epoch, number), SETS[place], Hold("repair", self.epoch)))

    def enact(self, _: int = 0) -> None:
        """An enactor: the newest row over a lower marker or none, healing at the same generation, else nothing."""
        row, live, marker = self.row, self.live, self.live.marker
        if marker is None and (live.empty or any(live.a == each.a for each in SETS)):
            self.write(enacted(row.generation, row.content, row.hold))
        elif isinstance(marker, Marker) and marker.generation <= row.generation:
            if marker.generation < row.generation or live.a != row.content.a:
                self.write(enacted(row.generation, row.content, row.hold, marker.writes + 1))
        elif isinstance(marker, Marker) and marker.content is not None and live.a != marker.content.a:
            healed = structs.replace(marker, writes=marker.writes + 1)
            self.write(structs.replace(live, marker=healed, a=marker.content.a, ttl=marker.content.ttl))

    def hand(self, how: int) -> None:
        """Somebody with the key: the marker, the records, both, other records, or something of his own."""
        if how == 0:
            self.write(structs.replace(self.live, marker=None))
        elif how == 1:
            self.write(structs.replace(self.live, a=(), ttl=0))
        elif how == 2:
            self.write(Live(NAME))
        elif how == 3:
            self.write(structs.replace(self.live, a=STRANGER, ttl=5))
        elif how == 4:
            self.write(structs.replace(self.live, a=SETS[1].a, ttl=SETS[1].ttl))
        else:
            self.write(structs.replace(self.live, marker=Foreign("", ((b"mine",),))))


class Observing:
    """An observer that looks now and then, and asks the journal; its row and its serial may be old."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.watch = PromiseWatch("demo")
        self.now = START

    def look(self, lag: int = 0) -> None:
        self.now += SECOND
        live, journal = self.world.live, self.world.journal
        row = self.world.rows[max(0, len(self.world.rows) - 1 - lag % 3)]
        seen = Seen(live.marker, live.a, live.aaaa, live.ttl, live.marker)
        self.watch.observe(Watched(NAME, "4", row), seen, self.now, max(0, journal.serial - lag // 3))
        journal.testify(self.watch)

    def broken(self) -> list[str]:
        return [name for name in WATCHED if self.watch.broken[name]]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["plan", "repair", "release", "late"]), st.integers(0, 3)),
        st.tuples(st.just("enact"), st.just(0)),
        st.tuples(st.just("enact"), st.just(0)),
        st.tuples(st.just("hand"), st.integers(0, 5)),
        st.tuples(st.just("look"), st.integers(0, 11)),
    ),
    max_size=25,
)


def play(world: World, observing: Observing, steps: list[tuple[str, int]]) -> None:
    for what, given_ in steps:
        if what == "look":
            observing.look(given_)
        else:
            getattr(world, what)(given_)


@settings(max_examples=600, deadline=None)
@given(STEPS)
def test_honest_writers_are_not_accused_for_what_happens_between_two_looks(steps: list[tuple[str, int]]) -> None:
    """Repairs, plans, enactments and hands in any order, looked at now and then, with old rows and old serials."""
    world = World()
    observing = Observing(world)
    play(world, observing, steps)
    observing.look()
    observing.look()
    assert observing.watch.violations == []


def crime_of(world: World, crime: str) -> Live | None:
    """What a writer of ours must never do to what stands, in one transaction; None where it can't be done."""
    marker = world.live.marker
    if not isinstance(marker, Marker) or not world.live.verified():
        return None
    number, epoch = marker.generation.number, marker.generation.epoch
    if crime == "never_backward" and number > 0:
        return enacted(Generation(epoch, number - 1), SETS[3], marker.hold)
    if crime == "hold_stands" and marker.hold is not None:
        return enacted(Generation(epoch, number + 1), SETS[3])
    return None


@settings(max_examples=600, deadline=None)
@given(STEPS, STEPS, st.sampled_from(["never_backward", "hold_stands"]))
def test_a_crime_is_found_whatever_hands_did_around_it(
    steps: list[tuple[str, int]], noise: list[tuple[str, int]], crime: str
) -> None:
    """Looked at, then unseen: hands, healings and the crime. What still looks wrong afterwards is found to be so."""
    world = World()
    observing = Observing(world)
    if crime == "hold_stands":
        steps = [*steps, ("repair", 1), ("plan", 0), ("enact", 0)]
    play(world, observing, [*steps, ("enact", 0), ("look", 0)])
    looked = observing.watch.past[NAME].memory
    play(world, observing, [each for each in noise if each[0] in ("hand", "enact", "late")])
    after = crime_of(world, crime)
    assume(after is not None and isinstance(after.marker, Marker))
    assert after is not None
    assert isinstance(after.marker, Marker)
    if crime == "never_backward":
        assume(after.marker.generation < looked.enacted)
    else:
        assume(looked.held is not None and looked.held.id > world.row.released)
        world.publish(after.marker.generation, SETS[3], None)
    world.write(after)
    observing.look()
    assert crime in observing.broken()


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_without_a_witness_nothing_is_claimed(steps: list[tuple[str, int]]) -> None:
    """A journal that doesn't reach back, or a server that gives none: counted apart, neither broken nor held."""
    world = World()
    world.journal.reaches = 1 << 40
    observing = Observing(world)
    play(world, observing, [*steps, ("hand", 2), ("repair", 2), ("look", 0), ("hand", 2), ("enact", 0), ("look", 0)])
    assert observing.watch.violations == []
    assert observing.watch.unsure["never_backward"] >= 1


def seen_again(*between: Live, row: Row | None = None, step: int = 1) -> Observing:
    """A repair that was looked at, then what happened unseen, then a look."""
    world = World()
    world.repair(1)
    observing = Observing(world)
    observing.look()
    for live in between:
        world.write(live)
    if step != 1:
        world.journal.found = [
            structs.replace(each, before=each.before * step, after=each.after * step) for each in world.journal.found
        ]
    if row is not None:
        world.rows.append(row)
    observing.look()
    return observing


def test_a_repair_that_a_hand_destroyed_before_anybody_knew_of_it_was_not_undone_by_us() -> None:
    """Repair, marker and records deleted by hand, the enactor writes the newest row it has: nothing remembered it."""
    old = enacted(Generation(0, 1), SETS[0])
    observing = seen_again(Live(NAME), old)
    assert observing.broken() == []
    assert observing.watch.unsure == dict.fromkeys(WATCHED, 0)
    assert observing.watch.checked["hold_stands"] == 1


def test_a_repair_that_a_writer_of_ours_replaced_was_undone() -> None:
    """The same two looks; in one transaction the marker went and an older one came."""
    assert seen_again(enacted(Generation(0, 1), SETS[0])).broken() == ["hold_stands", "never_backward"]


def test_what_one_version_holds_may_have_been_several_transactions() -> None:
    """RFC 1995 section 6: a server may condense. Where the serial rose by more than one, nothing is claimed."""
    observing = seen_again(enacted(Generation(0, 1), SETS[0]), step=7)
    assert observing.broken() == []
    assert observing.watch.unsure["hold_stands"] == observing.watch.unsure["never_backward"] == 1


def test_a_witness_that_has_not_seen_it_says_nothing() -> None:
    """Its differences don't lead to what was looked at."""
    world = World()
    world.repair(1)
    observing = Observing(world)
    observing.look()
    world.live = enacted(Generation(0, 1), SETS[0])
    observing.look()
    assert (observing.broken(), observing.watch.unsure["never_backward"]) == ([], 1)


def test_an_older_set_put_back_by_hand_right_after_a_write_is_no_torn_write() -> None:
    """The write was whole; what came after it moved the records alone."""
    world = World()
    observing = Observing(world)
    observing.look()
    world.plan(1)
    world.enact()
    world.write(structs.replace(world.live, a=SETS[0].a))
    observing.look()
    assert observing.broken() == []
    assert (observing.watch.unsure["never_torn"], observing.watch.altered) == (0, 1)


LIVES = st.builds(
    lambda place, marked, ttl: structs.replace(
        enacted(Generation(0, place + 1), SETS[place]) if marked else Live(NAME, None, SETS[place].a), ttl=ttl
    ),
    st.integers(0, 3), st.booleans(), st.integers(5, 6),
)  # fmt: skip


@given(st.lists(LIVES, min_size=1, max_size=8), st.data())
def test_a_state_is_found_among_the_differences_wherever_it_stood(lives: list[Live], data: Any) -> None:
    """Undone and done again, and placed: the states from there on are those that were."""
    kept = [lives[0]]
    for live in lives[1:]:
        if live != kept[-1]:
            kept.append(live)
    changes = [difference(one, other, serial) for serial, (one, other) in enumerate(pairwise(kept))]
    for (one, other), change in zip(pairwise(kept), changes, strict=True):
        assert done(Records.of(one), change).live(NAME) == other  # type: ignore[union-attr]
        assert undone(Records.of(other), change).live(NAME) == one  # type: ignore[union-attr]
    looked = data.draw(st.integers(0, len(kept) - 1))
    found = states(Records.of(kept[looked]), changes)
    assert found is not None
    place, stood = found
    assert kept[place] == kept[looked], "the first place at which the same stood"
    assert [each.live(NAME) for each in stood] == kept[place:]


def test_what_never_stood_is_placed_nowhere() -> None:
    """A look that the differences don't account for: no story is made up."""
    one, other = enacted(Generation(0, 1), SETS[0]), enacted(Generation(0, 2), SETS[1])
    assert states(Records.of(enacted(Generation(0, 9), SETS[2])), [difference(one, other, 0)]) is None


def test_a_serial_rises_by_one_also_across_its_end() -> None:
    """RFC 1982: after 2**32 - 1 comes 0, which some servers leave out."""
    empty = Records()
    assert Difference(7, 8, empty, empty).alone
    assert Difference(2**32 - 1, 0, empty, empty).alone
    assert Difference(2**32 - 1, 1, empty, empty).alone
    assert not Difference(7, 9, empty, empty).alone
