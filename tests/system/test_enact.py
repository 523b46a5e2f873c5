"""A saved plan is done exactly as it was looked at, or not at all."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from regions import RunningRegion

from fencepost.core.traffic.membership import Membership
from fencepost.ports import StorePort

API, WWW = "api.example.test", "www.example.test"
SIX = ["127.0.1.1", "127.0.1.2", "127.0.2.1", "127.0.2.2", "127.0.3.1", "127.0.3.2"]


@pytest.fixture(scope="module")
def region(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegion]:
    """One region for the whole file."""
    with RunningRegion(tmp_path_factory.mktemp("enact"), name="enact") as running:
        running.until(running.converged, 15, "six addresses each")
        running.until(lambda: looked_at(running), 15, "every target was looked at, and is well")
        yield running


def looked_at(region: RunningRegion) -> bool:
    """Whether the checkers have found every target healthy."""

    async def read(store: StorePort) -> bytes:
        return (await store.membership("web"))[1]

    body = region.with_store(read)
    return bool(body) and all(each.healthy for each in msgspec.json.decode(body, type=Membership).members)


@pytest.fixture(autouse=True)
def as_found(region: RunningRegion) -> Iterator[None]:
    """The file and what runs, as before."""
    good = region.config.read_text()
    yield
    region.config.write_text(good)
    region.fencepost("reload", "--yes", ok=(0, 1, 2, 3))
    region.until(lambda: region.converged() and nothing_to_do(region), 15, "all as planned")


def nothing_to_do(region: RunningRegion) -> bool:
    """Whether the file was loaded, and what it asks for is planned."""
    return not json.loads(region.fencepost("plan", "--json", ok=(0, 1, 2, 3))).get("changes", True)


def edit(region: RunningRegion, old: str, new: str) -> None:
    """Change the file; nothing is loaded by that."""
    text = region.config.read_text()
    assert old in text
    region.config.write_text(text.replace(old, new))


def save(region: RunningRegion, name: str = "p.json") -> Path:
    """Save the plan as it is now."""
    region.fencepost("plan", "--save", name)
    return region.folder / name


def stale(region: RunningRegion, *words: str) -> str:
    """Why a plan is refused."""
    found = json.loads(region.fencepost("enact", "p.json", "--yes", *words, "--json", ok=(1,)))["error"]
    assert "is stale" in found["what"]
    assert "Nothing was done" in found["what"]
    return str(found["what"])


def head(region: RunningRegion) -> int:
    """The newest plan's number."""

    async def read(store: StorePort) -> int:
        return (await store.head()).number

    return region.with_store(read)


def test_a_newer_plan_by_another_writer_makes_it_stale(region: RunningRegion) -> None:
    """octoDNS (tried): a plan made, a newer one applied, then the first applied: the older values were back."""
    edit(region, 'ttl = "5s"', 'ttl = "8s"')
    save(region)
    region.newer_plan(9)
    assert "was published since" in stale(region)
    assert region.ttl(API) == 9
    assert [region.addresses(name) for name in (API, WWW)] == [SIX, SIX]


def test_a_word_of_a_person_makes_it_stale(region: RunningRegion) -> None:
    """Inputs that moved: what was looked at isn't what would be done."""
    edit(region, 'ttl = "5s"', 'ttl = "8s"')
    save(region)
    region.fencepost("keep", "127.0.1.1", "--reason", "a test")
    assert "a person placed or ended" in stale(region)
    region.fencepost("resume", "127.0.1.1")
    assert region.ttl(API) == 5


def test_another_file_makes_it_stale(region: RunningRegion) -> None:
    """The file that is loaded is the one that was looked at."""
    edit(region, 'ttl = "5s"', 'ttl = "8s"')
    save(region)
    edit(region, 'ttl = "8s"', 'ttl = "11s"')
    assert "region.toml has changed since" in stale(region)
    edit(region, 'ttl = "11s"', 'ttl = "8s"')
    assert region.fencepost("apply", "p.json", "--yes").count("as saved") == 2
    assert region.ttl(API) == 8


def test_a_changed_or_foreign_file_is_refused(region: RunningRegion) -> None:
    """Who edits a saved plan gets none done; other files are named for what they are, and never overwritten."""
    edit(region, 'ttl = "5s"', 'ttl = "8s"')
    path = save(region)
    text = path.read_text()
    for old, new, code, what in (
        ("127.0.3.2", "127.0.3.9", 1, "was changed since it was saved"),
        ('"fencepost.plan/1"', '"fencepost.plan/2"', 2, "another version"),
        ('"basis"', '"base"', 2, "can't be enacted"),
        (text[2000:], "", 2, "cut off"),
    ):
        path.write_text(text.replace(old, new))
        error = json.loads(region.fencepost("enact", "p.json", "--yes", "--json", ok=(code,)))["error"]
        assert what in error["what"], error
    refused = region.fencepost("plan", "--save", str(region.config), "--json", ok=(1,))
    assert "no saved plan" in json.loads(refused)["error"]["what"]
    assert region.ttl(API) == 5


def test_without_a_planner_it_is_published_all_the_same(region: RunningRegion) -> None:
    """Planners are one way to publish a plan; enactors write whatever the head names."""
    edit(region, 'ttl = "5s"', 'ttl = "12s"')
    save(region)
    planner = region.signal("planner", 19)
    try:
        region.fencepost("enact", "p.json", "--yes")
        assert region.ttl(API) == region.ttl(WWW) == 12
    finally:
        os.kill(planner, 18)
    region.until(region.converged, 10, "and the planner has nothing to add")
    assert region.ttl(API) == 12


def test_formats(region: RunningRegion) -> None:
    """Markdown for a pull request, JSON for programs, and an exit code for CI."""
    assert region.fencepost("plan", "--format", "markdown", "--exit-code").startswith("### enact: nothing would change")
    edit(region, 'c = ["127.0.3.1", "127.0.3.2"]', 'c = ["127.0.3.1"]')
    said = region.fencepost("plan", "--format", "markdown", "--exit-code", ok=(1,))
    assert f"| `{API}` | " in said
    assert "| 6 → 5 | 0 → 0 | 0 | 1 |" in said
    assert "\n-  127.0.3.2  c  left the file: your act" in said
    found = json.loads(region.fencepost("plan", "--format", "json"))
    assert found["cost"] == {"writes": 2, "calls": 1, "fewest_healthy": 5}


def test_a_new_target_is_a_change_though_it_serves_only_once_ready(region: RunningRegion) -> None:
    """It said "nothing would change", exit 0, and the load that `enact` made stood nowhere in the history."""
    edit(region, 'c = ["127.0.3.1", "127.0.3.2"]', 'c = ["127.0.3.1", "127.0.3.2", "127.0.3.9"]')
    said = region.fencepost("plan", "--format", "markdown", "--exit-code", ok=(1,))
    assert said.startswith("### enact: no record changes at once; 1 new target would serve once ready\n")
    assert "| `127.0.3.9` | `web` | c | serves once ready: " in said
    found = json.loads(region.fencepost("plan", "--json"))
    assert [(each["address"], each["endpoints"]) for each in found["later"]] == [("127.0.3.9", [API, WWW])]
    save(region)
    done = region.fencepost("enact", "p.json", "--yes")
    assert "is loaded; no record changes at once; 1 new target would serve once ready" in done
    told = region.fencepost("history", "--only", "operator", "--json").splitlines()
    assert sum("1 target new" in line for line in told) == 1
    assert region.fencepost("plan", "--exit-code").count("127.0.3.9") == 2, "loaded, it only waits"


def test_what_was_saved_is_done_and_nothing_else(region: RunningRegion) -> None:
    """The file is loaded, the plan published as it was shown, and the planner finds nothing to add.

    It is the last test here: a target that comes back waits half a minute.
    """
    edit(region, 'ttl = "5s"', 'ttl = "7s"')
    edit(region, 'c = ["127.0.3.1", "127.0.3.2"]', 'c = ["127.0.3.1"]')
    before = head(region)
    how = "fencepost plan --save p.json  then  fencepost enact p.json"
    assert how in region.fencepost("plan")
    said = region.fencepost("plan", "--save", "p.json")
    assert f"plan {before + 1} would change 2 of 2 endpoints" in said
    assert "2 writes, 1 UPDATE; at no moment fewer than 5 healthy addresses." in said
    assert how not in said, "it was just done"
    assert head(region) == before
    assert region.ttl(API) == 5
    done = json.loads(region.fencepost("enact", "p.json", "--yes", "--json"))
    assert done == {"done": "enact", "on": [API, WWW], "plan": before + 1}
    assert [region.addresses(name) for name in (API, WWW)] == [SIX[:5], SIX[:5]]
    assert region.ttl(WWW) == 7
    assert "nothing would change" in region.fencepost("plan")
    region.fencepost("enact", "p.json", "--yes", ok=(1,))
