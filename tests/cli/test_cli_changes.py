"""What commands that change something say of their effect, before and after."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from fencepost.cli import repair, rollback
from fencepost.cli.drain import held_apart
from fencepost.cli.talk import Talk
from fencepost.core.fence import Generation, Hold, HoldKind, Marker
from fencepost.core.record_set import Content, content
from fencepost.core.zone import Live
from fencepost.settings import load

API = "api.example.test"
TWO = content(["127.0.1.1", "127.0.1.2"], 5)


def live(value: Content = TWO, kind: HoldKind | None = None, until_s: int = 0, owner: str = "demo") -> Live:
    """An endpoint as it stands."""
    hold = Hold(kind, 77, until_s) if kind else None
    marker = Marker.of(owner, "beef", Generation(0, 1), value, hold, 1)
    return Live(API, marker, value.a, value.aaaa, value.ttl)


@pytest.mark.parametrize(
    ("stands", "words"),
    [
        (live(), ""),
        (Live(API), ""),
        (live(kind="repair"), "is held by a repair, until you resume it"),
        (live(kind="rollback", until_s=2_000_000_000), "is held by a rollback, until 2033-05-18"),
        (live(Content(ttl=0), kind="withdraw"), "is withdrawn"),
        (live(owner="eu-2"), "isn't marked as ours"),
        (Live(API, None, ("192.0.2.7",), (), 5), "isn't marked as ours"),
    ],
)
def test_a_drain_knows_which_endpoints_follow_the_pool(stands: Live, words: str) -> None:
    """It waited ten seconds for a held endpoint to follow, and ended with "status says who isn't up": all were up."""
    said = held_apart(stands, "demo")
    assert words in said
    assert bool(said) == bool(words)


def test_a_repair_says_which_addresses_nobody_checks() -> None:
    """A slip in an address was written without a word; so was a spare, which is fine, and nobody's probes see it."""
    region = load(Path(__file__).parents[2] / "src/fencepost/dev/sample.toml", {})
    talk = cast("Talk", SimpleNamespace(region=region))
    value = content(["127.0.1.1", "127.0.9.9"], 5)
    assert repair.strangers(talk, API, value) == ["127.0.9.9 is no target of pool web: nobody checks it."]
    assert repair.strangers(talk, API, TWO) == []


def test_a_rollback_says_weights_only_where_some_were_set_then() -> None:
    """It said "weights" of a target that was coming back at a tenth; nobody had ever set one."""
    ramping = content({"127.0.1.1": 255, "127.0.1.2": 26}, 5)
    assert "weigh the same" in rollback.other_change(live(ramping), TWO)
    assert rollback.other_change(live(TWO), ramping) == "weights as of then"
    assert rollback.other_change(live(TWO), content(TWO.a, 9)) == "ttl 5 -> 9"
