"""What a region says of itself while words of people stand and parts are away: told as it is, by real processes."""

import json
from collections.abc import Iterator

import pytest
from regions import RunningRegion

from fencepost.roles.status.document import decode

API, WWW = "api.example.test", "www.example.test"
WHY = ("--reason", "a test")


@pytest.fixture(scope="module")
def region(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegion]:
    """One region for the whole file; each test leaves it as it found it."""
    with RunningRegion(tmp_path_factory.mktemp("told"), name="told") as running:
        running.until(lambda: len(running.addresses(WWW)) == 6, 15, "all in")
        yield running


@pytest.fixture(autouse=True)
def as_found(region: RunningRegion) -> Iterator[None]:
    """What a test placed and left is ended."""
    yield
    region.fencepost("resume", "--all", "--yes", ok=(0, 1, 3))
    region.until(lambda: [len(region.addresses(name)) for name in (API, WWW)] == [6, 6], 15, "six addresses each")


def test_under_a_repair_everything_speaks_of_what_dns_answers(region: RunningRegion) -> None:
    """status, explain and plan went by the pool, and drain waited in vain for a held endpoint to follow it."""
    region.fencepost("repair", API, "--address", "127.0.1.2", "--address", "127.0.9.9", "--yes", *WHY)
    status = decode(region.fencepost("status", "--json").encode())
    endpoint = next(each for each in status.endpoints if each.name == API)
    assert endpoint.addresses == ("127.0.1.2", "127.0.9.9")
    assert {out.reason for out in endpoint.out} == {"left aside by a repair"}
    assert status.verdict == "working"
    assert "2 (repair)" in region.fencepost("status")
    assert "2 answered, as the hold says" in region.fencepost("explain", API)
    assert "no target of any pool" in region.fencepost("explain", "127.0.9.9")
    told = json.loads(region.fencepost("plan", "--json"))["held"]
    assert [(each["name"], len(each["then"]["in"]), each["then"]["out"]) for each in told] == [(API, 5, ["127.0.9.9"])]
    said = region.fencepost("drain", "127.0.1.1", "--for", "5m", "--yes", *WHY)
    assert "127.0.1.1 is out" in said
    assert "127.0.1.1" not in region.addresses(WWW)


def test_a_reload_refuses_another_domain_and_says_so_until_the_file_is_put_back(region: RunningRegion) -> None:
    """It took it up "after a restart": the endpoint was an orphan at once, and plan gave advice for a BIND."""
    good = region.config.read_text()
    region.config.write_text(good.replace("example.test", "example.net"))
    try:
        told = json.loads(region.fencepost("reload", "--json", ok=(1,)))["error"]
        assert "dns.domain: example.test -> example.net" in told["what"]
        assert "nothing to preview" in json.loads(region.fencepost("plan", "--json", ok=(1,)))["error"]["what"]
        region.until(lambda: problems(region) == ["config-rejected"], 10, "status says so, too")
    finally:
        region.config.write_text(good)
    region.until(lambda: not problems(region), 10, "no refusal stands")
    assert region.addresses(API)


def problems(region: RunningRegion) -> list[str]:
    """What `status` says is wrong."""
    return [each.id for each in decode(region.fencepost("status", "--json", ok=(0, 1)).encode()).problems]


def test_a_lost_store_and_a_killed_api_are_told_without_alarm(region: RunningRegion) -> None:
    """Roles that were fine were called silent, and the counts of promises began anew without a word."""
    before = decode(region.fencepost("status", "--json").encode())
    assert before.observed is not None
    store = region.folder / "told.db"
    for path in store.parent.glob(store.name + "*"):
        if not path.name.endswith(".lock"):
            path.unlink()
    region.until(lambda: store.exists() and region.converged(), 15, "a new store, adopted")
    ids = problems(region)
    assert "role-silent" not in ids
    assert "region-down" not in ids
    pid = region.signal("api", 9)
    region.until(lambda: region.pid("api") != pid, 10, "the API is back")

    def counted_anew() -> bool:
        found = decode(region.fencepost("status", "--json", ok=(0, 1)).encode())
        after = found.observed.since if found.observed else None
        return after is not None and after > (before.observed.since or "")  # type: ignore[union-attr]

    region.until(counted_anew, 15, "the document says since when it counts")
