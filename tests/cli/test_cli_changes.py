"""What commands that change something say of their effect, before and after."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest
from called import call
from msgspec import structs

from fencepost import assembly
from fencepost.cli import repair, resume, rollback
from fencepost.cli.drain import held_apart
from fencepost.cli.scopes import Pools
from fencepost.cli.screen import mode_text, out_lines
from fencepost.cli.talk import Talk
from fencepost.core.fence import Generation, Hold, HoldKind, Marker
from fencepost.core.record_set import Content, content
from fencepost.core.traffic.membership import Member, Membership, Mode, OverrideKind, State
from fencepost.core.zone import Live
from fencepost.ports import Inputs
from fencepost.roles.overrides import StoredOverride, encode
from fencepost.roles.status.compose import compose
from fencepost.roles.status.document import Out, OverrideStatus, PoolStatus
from fencepost.roles.status.facts import Facts
from fencepost.settings import load
from fencepost.settings.initial import INITIAL
from fencepost.settings.schema import Launch

API = "api.example.test"
SAMPLE = Path(__file__).parents[2] / "src/fencepost/dev/sample.toml"
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
    region = load(SAMPLE, {})
    talk = cast("Talk", SimpleNamespace(region=region))
    value = content(["127.0.1.1", "127.0.9.9"], 5)
    nobody = frozenset[str]()
    assert repair.strangers(talk, API, value, nobody) == ["127.0.9.9 is no target of pool web: nobody checks it."]
    assert repair.strangers(talk, API, TWO, nobody) == []


def test_a_repair_knows_launched_targets_as_targets() -> None:
    """Of a target that the fleet had launched, and that served, it said "no target of pool web: nobody checks it"."""
    region = load(SAMPLE, {})
    talk = cast("Talk", SimpleNamespace(region=region))
    value = content(["127.0.1.1", "127.0.2.11"], 5)
    assert repair.strangers(talk, API, value, frozenset({"127.0.1.1", "127.0.2.11"})) == []
    pools = tuple(structs.replace(pool, launch=Launch(8080)) for pool in region.pools)
    launching = cast("Talk", SimpleNamespace(region=structs.replace(region, pools=pools)))
    (text,) = repair.strangers(launching, API, value, None)
    assert "without the store it isn't known whether a launch put it there" in text


def test_a_repair_reads_launched_targets_from_the_membership() -> None:
    """The row has every target, listed or launched; a store that is away says nothing."""
    row = Membership("web", members=(Member("127.0.2.11", "b", State.IN),))

    async def inputs() -> Inputs:
        return Inputs(1, b"", {"web": (1, msgspec.json.encode(row))}, {}, ())

    store = SimpleNamespace(inputs=inputs)
    talk = cast("Talk", SimpleNamespace(region=load(SAMPLE, {}), store=store))
    assert asyncio.run(repair.launched_of(talk, API)) == frozenset({"127.0.2.11"})


def test_a_rollback_says_weights_only_where_some_were_set_then() -> None:
    """It said "weights" of a target that was coming back at a tenth; nobody had ever set one."""
    ramping = content({"127.0.1.1": 255, "127.0.1.2": 26}, 5)
    assert "weigh the same" in rollback.other_change(live(ramping), TWO)
    assert rollback.other_change(live(TWO), ramping) == "weights as of then"
    assert rollback.other_change(live(TWO), content(TWO.a, 9)) == "ttl 5 -> 9"


def stopped_region(folder: Path) -> list[str]:
    """A region that has run, with a drain in its store, and nothing running; the words that name it."""
    config = folder / "region.toml"
    config.write_text(INITIAL.replace("5300", "1").replace("5301", "2"))
    region = load(str(config), {})
    assembly.load_configuration(region)
    assembly.make_tsig_key(region)

    async def put() -> None:
        store = assembly.open_store(region)
        word = StoredOverride("force::192.0.2.10:", OverrideKind.DRAIN, "", "192.0.2.10", by="ada", reason="disk")
        await store.put_override(word.id, encode(word))
        await store.close()

    asyncio.run(put())
    return ["--config", str(config), "--timeout", "2s"]


@pytest.mark.parametrize("what", [["192.0.2.10"], ["--all", "--yes"]])
def test_a_stored_drain_is_ended_while_the_region_is_down(tmp_path: Path, what: list[str]) -> None:
    """It failed on DNS, which no drain stands in; and it takes no reason, as the line to paste has none."""
    done = call("resume", *what, *stopped_region(tmp_path), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the drain is over" in done.stdout


@pytest.mark.parametrize("words", [["plan"], ["repair", "api", "--address", "192.0.2.10", "--yes", "--reason", "x"]])
def test_our_own_server_that_is_down_is_answered_with_what_starts_it(tmp_path: Path, words: list[str]) -> None:
    """It said "does it run, and is its port open?" of the embedded server."""
    done = call(*words, *stopped_region(tmp_path), cwd=tmp_path)
    assert done.returncode == 3
    assert "try      fencepost up --config region.toml    starts it" in done.stderr


def test_a_value_of_the_environment_is_blamed_on_its_variable(tmp_path: Path) -> None:
    """FENCEPOST_TIMEOUT=zzz was said to be --timeout, which nobody had written."""
    words = stopped_region(tmp_path)[:2]
    done = call("status", *words, cwd=tmp_path, FENCEPOST_TIMEOUT="zzz")
    assert done.returncode == 2
    assert "$FENCEPOST_TIMEOUT 'zzz'" in done.stderr
    assert "--timeout 'zzz'" in call("status", *words, "--timeout", "zzz", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("command", "default"), [("drain", "1h"), ("pause", "1h"), ("repair", "ever"), ("withdraw", "ever")]
)
def test_help_says_how_long_a_change_lasts_by_default(command: str, default: str) -> None:
    """The default of --for stood in no help."""
    assert f"Default: {default}" in " ".join(call(command, "--help").stdout.replace("│", " ").split())


def test_a_dead_target_that_comes_back_with_its_drains_end_is_named() -> None:
    """Under a pause it was put back without a word, though "nothing goes out or comes back"."""
    word = StoredOverride("o", OverrideKind.DRAIN, "web", "127.0.1.1")
    dead = Member("127.0.1.1", "a", State.DRAINED, healthy=False)
    for mode, why in ((Mode.DISABLED, "the pool is paused"), (Mode.ENABLED, "limits may keep what comes back")):
        known = Pools(load(SAMPLE, {}), {"web": Membership("web", members=(dead,), mode=mode)}, (word,))
        assert resume.returning_dead(known, (word,)) == [
            f"127.0.1.1 looks dead (pool web): {why}, so callers may get it again"
        ]


def test_a_word_about_a_zone_of_one_pool_names_the_pool() -> None:
    """`pause web --zone a` was listed as "zone a", as if it held for every pool."""
    word = StoredOverride("o", OverrideKind.PAUSE, "web", "", "a")
    assert word.on == "zone a in pool web"
    assert resume.targets(word.on, word)


def test_a_region_that_was_never_started_is_said_to_be_that(tmp_path: Path) -> None:
    """It said "the store file is gone; records are still healed" and "put the file back": nothing had ever run."""
    (tmp_path / "region.toml").write_text(INITIAL)
    for words in (["status"], ["explain", "api"], ["reload"], ["drain", "192.0.2.10", "--reason", "x"], ["history"]):
        done = call(*words, cwd=tmp_path)
        assert done.returncode == 3, words
        assert "this region was never started here" in done.stderr, words
        assert "fencepost up --config region.toml    starts it" in done.stderr, words


def test_status_names_what_is_out_and_calls_a_pause_a_pause() -> None:
    """ "OUT 2" named nobody, and a paused pool was "disabled", which is what the file says."""
    pool = PoolStatus("web", 6, 4, 2, 0, 2, 0, None, False, 2, 3, 1.0, None, mode="disabled")
    found = structs.replace(compose(Facts(load(SAMPLE, {}), 1, "api")), pools=(pool,))
    paused = structs.replace(found, overrides=(OverrideStatus("pause", "pool web", "ada", "x", None),))
    assert mode_text(pool, found) == "disabled"
    assert mode_text(pool, paused) == "paused"
    gone = (Out("127.0.2.1", "dead", "fall", None), Out("127.0.3.1", "drained", "operator", None))
    both = tuple(structs.replace(each, out=gone) for each in found.endpoints)
    assert out_lines(structs.replace(found, endpoints=both)) == [" OUT   127.0.2.1 dead, 127.0.3.1 drained"]
    one = (structs.replace(both[0], out=gone[:1]), both[1])
    assert len(out_lines(structs.replace(found, endpoints=one))) == 2
    assert out_lines(found) == []
