"""What a hold would have callers get though it doesn't serve: said with its reason before one says yes."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest
from msgspec import structs

from fencepost.cli import unwell
from fencepost.cli.drain import show_keep
from fencepost.cli.holds import Standing
from fencepost.cli.rollback import Step, show
from fencepost.cli.scopes import Pools, Scope
from fencepost.cli.talk import Talk
from fencepost.core.instant import HOUR
from fencepost.core.record_set import content
from fencepost.core.traffic.membership import Fate, Member, Membership, OverrideKind, State, Votes
from fencepost.core.zone import Live
from fencepost.ports import Inputs, Unavailable
from fencepost.roles.overrides import StoredOverride, encode
from fencepost.settings import load

SAMPLE = Path(__file__).parents[2] / "src/fencepost/dev/sample.toml"
API = "api.example.test"
AT = 1_700_000_000 * 10**9
DEAD = Member("127.0.1.1", "a", State.OUT, healthy=False, dead_since=AT, cause="connection refused", votes=Votes(0, 3))
WELL = Member("127.0.1.2", "a", State.IN, healthy=True, votes=Votes(3, 3))
DRAINED = Member("127.0.2.1", "b", State.DRAINED, healthy=True, forced=OverrideKind.DRAIN, votes=Votes(3, 3))
PENDING = Member("127.0.2.2", "b", State.PENDING, cause="passed from 1 of 3 zones")
ENDED = Member(
    "127.0.3.1", "c", State.DRAINED, healthy=True, cause="web-k3v9q2mx there was terminated", fate=Fate.TERMINATED
)
WORD = StoredOverride("x", OverrideKind.DRAIN, "web", DRAINED.key, "", "ann", "a disk", 0, AT)


def talk(*members: Member, away: bool = False) -> Talk:
    """A conversation with the sample's store, whose pool has these members."""

    async def inputs() -> Inputs:
        if away:
            raise Unavailable("the store is away")
        row = msgspec.json.encode(Membership("web", members=members))
        return Inputs(1, b"", {"web": (1, row)}, {"x": encode(WORD)}, ())

    found = SimpleNamespace(region=load(SAMPLE, {}), store=SimpleNamespace(inputs=inputs))
    return cast("Talk", found)


def shown(of: Talk, addresses: list[str], now: tuple[str, ...]) -> list[dict[str, object]] | None:
    """What a rollback to these addresses says; its document."""
    step = Step(API, Standing(Live(API, a=now), None), content(addresses, 5), 3)
    return asyncio.run(show(of, step))


def test_a_rollback_names_who_would_be_answered_dead_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """A plan of an hour ago knows nothing of who died since, and health takes nothing out of what is held
    (rollback.md). The row knows: each such address with its reason, and the line that answers the others.
    """
    of = talk(DEAD, WELL, DRAINED, PENDING, ENDED)
    every = [each.key for each in (DEAD, WELL, DRAINED, PENDING, ENDED)]
    found = shown(of, every, (WELL.key, PENDING.key))
    said = capsys.readouterr().err
    assert found is not None
    assert [(each["address"], each["state"]) for each in found] == [
        (DEAD.key, "dead"),
        (DRAINED.key, "drained"),
        (PENDING.key, "pending"),
        (ENDED.key, "terminated"),
    ]
    dead = (
        "! 127.0.1.1 (a) would be answered again: dead since 2023-11-14 22:13:20: connection refused, 0 of 3 checkers"
    )
    assert dead in said
    assert "! 127.0.2.1 (b) would be answered again: drained by ann, until you resume it: a disk" in said
    assert "! 127.0.2.2 (b) stays answered: pending: passed from 1 of 3 zones" in said
    assert "! 127.0.3.1 (c) would be answered again: web-k3v9q2mx there was terminated" in said
    assert "4 of the 5 addresses that callers get" in said
    assert f"Without them:  fencepost repair {API} --address 127.0.1.2\n" in said


def test_a_rollback_among_the_well_says_nothing_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Quiet when well; and one that is out but passes again could serve, so it is none of them."""
    again = structs.replace(DEAD, healthy=True, dead_since=0)
    assert shown(talk(again, WELL), [DEAD.key, WELL.key], (WELL.key,)) == []
    assert "!" not in capsys.readouterr().err


def test_where_nobody_of_a_family_serves_no_line_would_be_right(capsys: pytest.CaptureFixture[str]) -> None:
    """A repair without the dead would leave nothing to answer (never empty, per family)."""
    shown(talk(DEAD, WELL), [DEAD.key], (WELL.key,))
    said = capsys.readouterr().err
    assert f"Mend it first, or look for another plan:  fencepost history {API} --only plan" in said
    assert "fencepost repair" not in said


def test_an_address_that_the_pool_has_no_more_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A target that left the file, or an instance that ended: nobody checks what would be answered."""
    assert shown(talk(WELL), [WELL.key, "127.0.9.9"], (WELL.key,)) == []
    assert "127.0.9.9" in capsys.readouterr().err


def test_a_store_that_is_away_holds_no_repair_up_and_leaves_it_unknown() -> None:
    """Break glass needs region.toml and the provider, nothing else; and unknown is said, null and never "none"."""
    found = asyncio.run(unwell.unwell(talk(away=True), API, [DEAD.key]))
    assert found is None
    assert unwell.document(API, found) is None
    assert "isn't known" in unwell.lines(API, content([DEAD.key], 5), (), found)[0]


def test_a_keep_says_that_it_brings_back_the_dead(capsys: pytest.CaptureFixture[str]) -> None:
    """ "However sick they look" is no word about who does."""
    row = Membership("web", members=(DEAD, WELL))
    known = Pools(load(SAMPLE, {}), {"web": row}, ())
    show_keep(known, [Scope("web", DEAD.key)], time.time_ns() + HOUR)
    assert "! 127.0.1.1 (a) comes back: dead since 2023-11-14 22:13:20" in capsys.readouterr().err
