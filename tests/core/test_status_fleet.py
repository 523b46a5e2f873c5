"""The fleet in the status document: what each shard's manager says, and which of it asks for somebody."""

import pytest
from msgspec import structs
from status_examples import NOW, beat, facts, region, stored

from fencepost.cli.screen import shard_lines
from fencepost.core.capacity.coming_back import Noted
from fencepost.core.capacity.rows import CalibrationRow, CheckpointRow, ShardRow
from fencepost.core.instant import MINUTE, SECOND
from fencepost.ports import Beat, Unavailable
from fencepost.roles.status.compose import compose
from fencepost.roles.status.document import Problem, RecoveryStatus, Status, decode, encode, when
from fencepost.roles.status.facts import FleetFacts, Process
from fencepost.roles.status.kinds import KINDS
from fencepost.roles.status.metrics import exposition
from fencepost.roles.status.page import page
from fencepost.settings.schema import Fleet, Region, Secret

COUNTS = {"hosts": 300, "held": 290, "suspect": 4, "lapsed": 10, "room": 7, "waiting": 0, "ready": 20, "limit": 64}
CALIBRATED = CalibrationRow("hosts", 128, 5, 9, 20_000.0, NOW - 3 * MINUTE)


def fleet() -> Region:
    """A region with a fleet of one shard."""
    return structs.replace(region(), fleet=Fleet(1, 10 * SECOND, Secret(file="k"), "none"))


def told(
    counts: dict[str, int], ago: int = 1, opened: str = "1", calibration: CalibrationRow | None = CALIBRATED
) -> Status:
    """The document, some seconds after the manager spoke."""
    row = CheckpointRow("1", "m", NOW - ago * SECOND, ("h3", "h7"), (2, 0), (), {**COUNTS, **counts})
    known = FleetFacts("1", {1: ShardRow(1, 1, "m", 3, open=opened)}, {1: row}, calibration)
    return compose(facts(region=fleet(), store=stored(fleet=known)))


def ids(status: Status) -> set[str]:
    """Its problems with the fleet."""
    ours = ("hosts-silent", "shard-unmanaged", "host-lapsed", "no-room", "leases-in-memory", "placing-closed")
    return {each.id for each in status.problems if each.id in ours}


def test_a_shard_is_one_line_and_numbers_for_programs() -> None:
    """In words for people, in the document and the metrics for the rest; without a fleet nothing of it."""
    status = told({})
    assert ids(status) == set()
    assert shard_lines(status) == [
        " FLEET  shard 1: manager unknown, 300 hosts (286 held, 4 suspect, 10 lapsed), 20 ready",
        " FLEET  128 checks at once, measured 3 min ago",
    ]
    text = exposition(status).decode()
    assert 'fencepost_fleet_hosts{lease="held",shard="1"} 290.0' in text
    assert 'fencepost_fleet_limit{shard="1"} 64.0' in text
    assert "fencepost_fleet_checks_total{" not in text  # nobody said how many
    assert compose(facts()).fleet is None
    assert shard_lines(compose(facts())) == []


def managed(process: int | None, *beats: Beat, gone: frozenset[int] = frozenset()) -> Status:
    """The document where a supervisor runs a manager, and these signs of life are the managers'."""
    row = CheckpointRow("1", "m", NOW - SECOND, (), (), (), COUNTS)
    known = FleetFacts("1", {1: ShardRow(1, 1, "m", 3, open="1")}, {1: row}, CALIBRATED)
    processes = {**facts().processes, "host-manager/1": Process(process, started=NOW - MINUTE)}
    all_beats = (*stored().beats, *beats)
    return compose(facts(region=fleet(), store=stored(fleet=known, beats=all_beats), processes=processes, gone=gone))


def managers(status: Status) -> dict[str, tuple[str, int | None]]:
    """Each manager that is listed: its state and pid."""
    return {role.name: (role.state, role.pid) for role in status.roles if role.name.startswith("host-manager")}


OURS, STANDS_BY = "host-manager/1", "host-manager/1/standby"


def test_a_manager_that_stands_by_is_listed_beside_the_one_that_has_the_shard() -> None:
    """Both gave signs of life under one name: the last writer won, and the healthy other was called silent."""
    late = {"at": NOW - 60 * SECOND}
    both = managed(7, beat(OURS, 7), beat(STANDS_BY, 8))
    assert managers(both) == {OURS: ("up", 7), STANDS_BY: ("up", 8)}
    assert shard_lines(both)[0].startswith(" FLEET  shard 1: manager up (pid 7)")
    taken = managed(7, beat(OURS, 8), beat(STANDS_BY, 7))
    assert managers(taken) == {OURS: ("up", 8), STANDS_BY: ("up", 7)}, "the supervisor's may be the one that stands by"
    assert shard_lines(taken)[0].startswith(" FLEET  shard 1: manager up (pid 8)")
    third = managed(7, beat(OURS, 8), beat(STANDS_BY, 9))
    assert managers(third) == {OURS: ("up", 8), STANDS_BY: ("up", 7)}, "under this name any speaks for all"
    for status in (both, taken, third):
        assert not [each.on for each in status.problems if each.on.startswith("host-manager")]
    assert managers(managed(7, beat(OURS, 7), beat(STANDS_BY, 8, **late))) == {OURS: ("up", 7)}, "it was ended"
    assert managers(managed(7, beat(OURS, 7), beat(STANDS_BY, 7, **late))) == {OURS: ("up", 7)}, "it stood by itself"
    starts = managed(7, beat(OURS, 6), beat(STANDS_BY, 7), gone=frozenset({6}))
    assert managers(starts) == {OURS: ("up", 7)}, "the one before is gone, and its shard is still to be had"


def test_a_supervised_manager_that_hangs_or_ended_is_told_while_another_has_its_shard() -> None:
    """The shard is well; the process isn't, whose name in the log is that of its role."""
    for stood_by in (beat(STANDS_BY, 8), beat(STANDS_BY, 7, at=NOW - 60 * SECOND)):
        hangs = managed(7, beat(OURS, 8), stood_by)
        assert managers(hangs) == {OURS: ("up", 8), STANDS_BY: ("silent", 7)}
        assert [each.id for each in hangs.problems if each.on == STANDS_BY] == ["role-silent"]
    ended = managed(None, beat(OURS, 8))
    assert managers(ended) == {OURS: ("up", 8), STANDS_BY: ("down", None)}
    (found,) = [each for each in ended.problems if each.on == STANDS_BY]
    assert found.try_.endswith("host-manager-1.log")
    alone = managed(7, beat(OURS, 7, at=NOW - 60 * SECOND))
    assert managers(alone) == {OURS: ("silent", 7)}


def test_a_host_that_cant_write_its_memory_is_said_with_why_and_since_when() -> None:
    """Nothing but its agent's own log said it, while it was given instances that it refused (seen on the sample)."""
    why = "/state/memory can't be written: No space left on device"

    def of(*unable: tuple[str, str, int], count: int = 1) -> Status:
        row = CheckpointRow("1", "m", NOW - SECOND, counts={**COUNTS, "unable": count}, unable=unable)
        known = FleetFacts("1", {1: ShardRow(1, 1, "m", 3, open="1")}, {1: row}, CALIBRATED)
        return compose(facts(region=fleet(), store=stored(fleet=known)))

    def said(status: Status) -> list[Problem]:
        return [each for each in status.problems if each.id == "host-cannot-write"]

    (found,) = said(of(("h3", why, NOW - 30 * SECOND)))
    assert (found.on, found.since, found.needs_person) == ("h3", when(NOW - 30 * SECOND), False)
    assert found.what.startswith(f"host h3 takes no orders: {why}; ")
    assert found.try_ == "fencepost explain h3"
    (found,) = said(of(("h3", why, NOW - 2 * MINUTE), count=12))
    assert found.needs_person
    assert "(11 more hosts say such a thing)" in found.what
    assert said(of(count=0)) == []


def test_a_suspect_host_is_counted_once() -> None:
    """It said "2 hosts (2 held, 1 suspect)", where `fleet hosts` said "1 held, 1 suspect"."""
    lines = shard_lines(told({"hosts": 2, "held": 2, "suspect": 1, "lapsed": 0}))
    assert "2 hosts (1 held, 1 suspect)" in lines[0]
    assert "1 host (1 suspect)" in shard_lines(told({"hosts": 1, "held": 1, "suspect": 1, "lapsed": 0}))[0]


def test_what_a_silent_manager_said_is_shown_with_its_age() -> None:
    """Its leases stood there as if they were of now."""
    assert " ago" not in shard_lines(told({}, ago=20))[0]
    assert shard_lines(told({}, ago=300))[0].endswith("20 ready, as told 5 min ago")


def test_one_host_is_one_host() -> None:
    """It said "1 hosts"."""
    one = {"hosts": 1, "held": 1, "suspect": 0, "lapsed": 0}
    assert shard_lines(told(one))[0] == " FLEET  shard 1: manager unknown, 1 host (1 held), 20 ready"


def test_a_drain_that_is_stuck_names_the_host_and_the_ways_out() -> None:
    """A drained host kept its instances for ever, and nothing said that there was no place for them."""

    def said(*stuck: tuple[str, int]) -> str:
        counts = {**COUNTS, "stuck": sum(count for _, count in stuck)}
        row = CheckpointRow("1", "m", NOW, (), (), (), counts, (), stuck)
        known = FleetFacts("1", {1: ShardRow(1, 1, "m", 3, open="1")}, {1: row}, CALIBRATED)
        status = compose(facts(region=fleet(), store=stored(fleet=known)))
        return "".join(each.what for each in status.problems if each.id == "drain-stuck")

    assert said() == ""
    ways = "no place elsewhere: add a host, or  fencepost resume h1"
    assert said(("h1", 3)) == f"host h1 is drained, and 3 of its instances have {ways}"
    assert said(("h1", 1)) == f"host h1 is drained, and 1 of its instances has {ways}"
    assert said(("h1", 1), ("h2", 2)) == f"hosts h1, h2 are drained, and 3 instances have {ways}"


def test_a_crash_loop_says_what_ended_how_often_and_why() -> None:
    """A pool of one whose command fails is red for that, not for the address that a limit keeps."""
    why = "web-1.4 ended by itself on h1: couldn't be started: /bin/wbe: No such file or directory"
    row = CheckpointRow("1", "m", NOW, (), (), (), {**COUNTS, "looping": 2})
    row = structs.replace(row, loops=(("web-1", "web", 4, why), ("web-2", "web", 3, "other")))
    known = FleetFacts("1", {1: ShardRow(1, 1, "m", 3, open="1")}, {1: row}, CALIBRATED)
    status = compose(facts(region=fleet(), store=stored(fleet=known)))
    (found,) = [each for each in status.problems if each.id == "crash-loop"]
    assert found.needs_person
    assert found.on == "web"
    assert found.what.startswith(
        f"web-1 ended by itself 4 times in a row, as has 1 other of the pool; the last: {why}; it is tried again"
    )
    assert found.try_ == "fencepost fleet instances --pool web"


def test_what_was_never_measured_is_said_with_the_line_that_does() -> None:
    """Else nobody would know that a number that hurts nobody stands in for it."""
    assert shard_lines(told({}, calibration=None))[-1].split("  ")[1:3] == [
        "never calibrated:",
        "fencepost fleet calibrate",
    ]


@pytest.mark.parametrize(
    ("counts", "ago", "opened", "id_", "words"),
    [
        ({"mass": 1, "suspect": 200}, 1, "1", "hosts-silent", "200 hosts fell silent together"),
        ({}, 60, "1", "shard-unmanaged", "no manager holds it"),
        ({"lapsed_unsaid": 10}, 1, "1", "host-lapsed", "10 hosts have lapsed (h3, h7 and others); what ran there"),
        ({"waiting": 5, "room": 0}, 1, "1", "no-room", "5 instances wait"),
        ({"waiting": 1, "room": 0}, 1, "1", "no-room", "1 instance waits, and"),
        ({"unheard": 3, "waits_s": 20}, 1, "0", "placing-closed", "3 of 300 hosts to tell what they run, and 20 s for"),
        ({"missing": 2}, 1, "0", "placing-closed", "2 of the hosts that [fleet] names"),
    ],
)
def test_each_has_its_own_words(counts: dict[str, int], ago: int, opened: str, id_: str, words: str) -> None:
    """One at a time: what is wrong, how much of it, and a page of its own."""
    status = told(counts, ago, opened)
    assert ids(status) == {id_}
    (found,) = [each for each in status.problems if each.id == id_]
    assert words in found.what
    assert id_ in KINDS


def test_a_store_that_is_away_is_no_fault_of_leases() -> None:
    """October 2025: what hosts do must not depend on a database that can't be reached."""
    status = compose(facts(region=fleet(), store=stored(), store_error=Unavailable("away")))
    assert ids(status) == {"leases-in-memory"}
    (found,) = [each for each in status.problems if each.id == "leases-in-memory"]
    assert not found.needs_person


def recovering(*pasts: tuple[Noted, ...], ago: int = 1) -> Status:
    """The document of a fleet whose managers noted these counts."""
    rows = {
        shard: CheckpointRow(str(shard), "m", NOW - ago * SECOND, (), (), (), COUNTS, past=past)
        for shard, past in enumerate(pasts, 1)
    }
    known = FleetFacts("1", {n: ShardRow(n, len(pasts), "m", 3, open="1") for n in rows}, rows, CALIBRATED)
    region_ = structs.replace(fleet(), fleet=Fleet(len(pasts), 10 * SECOND, Secret(file="k"), "none"))
    return compose(facts(region=region_, store=stored(fleet=known)))


def test_a_recovery_is_how_many_of_how_many_how_fast_and_about_when_it_is_done() -> None:
    """An operator asked; `status` told counts only. On the terminal, the page and in the document, all from rows."""
    first = tuple((n * 2 * SECOND, 500 * n, 60_000) for n in range(5))
    second = tuple((n * 2 * SECOND, 400 * n, 40_000) for n in range(5))
    status = recovering(first, second)
    assert status.fleet is not None
    assert status.fleet.recovery == RecoveryStatus(3600, 100_000, 450.0, 8.0, 232.0)
    text = "3,600 of 100,000 leases back, about 450/s, done in about 3 min 52 s"
    assert f" FLEET  {text}" in shard_lines(status)
    assert " FLEET  128 checks at once over 2 shards, measured 3 min ago" in shard_lines(status)
    assert text in page(status)
    assert decode(encode(status)) == status


def test_a_recovery_of_which_too_little_is_known_says_so() -> None:
    """No rate from one count, or from a manager that has fallen silent; one that stands still says that it does."""

    def line(*pasts: tuple[Noted, ...], ago: int = 1) -> str:
        return next((each for each in shard_lines(recovering(*pasts, ago=ago)) if "leases back" in each), "")

    moving = tuple((n * 10 * SECOND, n, 100) for n in range(4))
    stands = tuple((n * 10 * SECOND, 40, 100) for n in range(4))
    assert line(((5, 40, 100),)) == " FLEET  40 of 100 leases back; too little noted yet to say how fast"
    assert line(moving, ago=300) == " FLEET  3 of 100 leases back; too little noted yet to say how fast"
    assert line(stands) == " FLEET  40 of 100 leases back, none more in the last 30 s"
    assert line(moving) == " FLEET  3 of 100 leases back, about 0.1/s, done in about 16 min 10 s"
    whole = "43 of 200 leases back, about 0.1/s; in one shard none, so when it is done isn't known"
    assert line(moving, stands) == f" FLEET  {whole}"
    assert line(()) == "", "a manager of an earlier version notes nothing"
