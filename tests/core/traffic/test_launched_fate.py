"""What became of a target is told by a field, and no words of its cause decide anything."""

import msgspec
from msgspec import structs
from pool_world import row
from test_launched import FleetPool, pool

from fencepost.core.traffic import decision
from fencepost.core.traffic.launched import why_dead
from fencepost.core.traffic.limits import SafetySettings
from fencepost.core.traffic.membership import Fate, Member, Membership, Mode, Move, Rule, State, Target
from fencepost.core.traffic.operator_word import heard


def named(world: FleetPool, key: str) -> Member:
    """A member by its address."""
    return next(each for each in row(world).members if each.key == key)


def test_a_members_fate_says_why_its_checks_are_of_no_account_and_its_words_decide_nothing() -> None:
    """RULES 2: "kept is shown everywhere", and by its right name. Told from words, what another attempt took the place
    of was called dead, and a checker's words could call a dead target lapsed."""
    world = pool(8)
    world.lease(0, "lapsed")
    world.hosts["h1"] = structs.replace(world.hosts["h1"], word="gone")
    world.run(2)
    shown = [named(world, f"10.1.0.{number}") for number in (1, 2, 3)]
    assert [why_dead(each) for each in shown] == ["lapsed", "gone", "dead"]
    assert shown[2].fate is None
    kept = {move.key: move.fate for move in row(world).moves if move.before is State.IN}
    assert kept["10.1.0.1"] is Fate.LAPSED
    world.lease(0, "held")
    world.run(60)
    back = named(world, "10.1.0.1")
    assert (back.healthy, back.cause, back.fate) == (True, "", None)
    alone = FleetPool(0)
    alone.launch("web-0", 0)
    alone.run(100)
    alone.end_by_itself("web-0")
    alone.launch("web-0", 0, acknowledged=False)
    alone.run(2)
    (member,) = row(alone).members
    assert (why_dead(member), member.cause.startswith("attempt web-0.2 took its place, and ")) == ("over", True)


def test_rows_and_moves_of_older_versions_have_no_fate_until_the_next_pass() -> None:
    """A store outlives the version that wrote it; what it lacks is written by the first pass, and read as unknown."""
    world = pool(6)
    world.lease(0, "lapsed")
    world.run(30)
    found = named(world, "10.1.0.1")
    assert found.fate is Fate.LAPSED
    older = {name: value for name, value in msgspec.to_builtins(found).items() if name != "fate"}
    assert msgspec.convert(older, Member) == structs.replace(found, fate=None)
    older = {name: value for name, value in msgspec.to_builtins(row(world).moves[-1]).items() if name != "fate"}
    assert msgspec.convert(older, Move).fate is None
    members = tuple(structs.replace(each, fate=None) for each in row(world).members)
    world.row = structs.replace(row(world), members=members)
    world.run(2)
    assert named(world, "10.1.0.1").fate is Fate.LAPSED


def test_what_comes_back_after_a_drain_of_its_host_has_no_word_of_it_left() -> None:
    """Without a quorum the last finding holds (RULES 1), and a drain of a host is none: it was a member's in service,
    and a person's own drain of that address was told as its host's."""
    member = Member(
        "10.1.0.1",
        "a",
        State.DRAINED,
        rule=Rule.OPERATOR,
        healthy=True,
        served=True,
        cause="nothing is placed there",
        fate=Fate.MOVED,
    )
    words, mode = heard((), Mode.ENABLED, 0)
    others = tuple(Member(f"10.1.0.{n}", "b", State.IN, healthy=True, served=True) for n in (2, 3))
    known = Membership("web", members=(member, *others))
    members = {each.key: each for each in known.members}
    targets = {key: Target(key, "a") for key in members}
    work = decision.Pass(known, members, targets, {}, (), {}, words, mode, 0, SafetySettings(), 1)
    decision.obey(work)
    back = work.members["10.1.0.1"]
    assert (back.state, back.cause, back.fate) == (State.IN, "", None)
