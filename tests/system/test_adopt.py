"""Taking over what stands without a marker: nobody's answer changes in the write that makes it ours."""

import asyncio
import json
import os
from collections.abc import Iterator
from typing import Any

import dns.query
import dns.tsig
import dns.update
import pytest
from patience import Patience, patient
from regions import FENCEPOST, RunningRegion

from fencepost import assembly
from fencepost.core.store import Row
from fencepost.ports import StorePort

API, WWW = "api.example.test", "www.example.test"
ODD = ["127.0.1.1", "127.0.9.8", "127.0.9.9"]
OTHERS, LATER = ["127.0.8.1", "127.0.8.2"], ["127.0.8.2", "127.0.8.3"]
SIX = ["127.0.1.1", "127.0.1.2", "127.0.2.1", "127.0.2.2", "127.0.3.1", "127.0.3.2"]


@pytest.fixture(scope="module")
def region(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegion]:
    """One region for the whole file; each test leaves both endpoints ours."""
    with RunningRegion(tmp_path_factory.mktemp("adopt"), name="adopt") as running:
        running.until(running.converged, 15, "six addresses each")
        yield running


def update(region: RunningRegion, *steps: tuple[str, ...]) -> None:
    """One signed UPDATE: ("delete", name[, type]), ("add", name, ttl, type, value...)."""
    key = assembly.tsig_key(region.region)
    keyring = {f"{key.name}.": dns.tsig.Key(f"{key.name}.", key.secret, f"{key.algorithm}.")}
    message = dns.update.UpdateMessage("example.test", keyring=keyring)
    for what, name, *rest in steps:
        getattr(message, what)(f"{name}.", *rest)
    assert dns.query.tcp(message, "127.0.0.1", timeout=5, port=region.dns_port).rcode() == 0


def strange(region: RunningRegion, name: str, addresses: list[str], ttl: int = 300) -> None:
    """Somebody else's records at a name of ours, without a marker."""
    update(
        region,
        ("delete", f"_fencepost.{name}", "TXT"),
        ("delete", name, "A"),
        *(("add", name, ttl, "A", each) for each in addresses),  # type: ignore[arg-type]
    )


def rows(region: RunningRegion, name: str) -> list[Row]:
    """An endpoint's kept rows, newest first."""

    async def read(store: StorePort) -> list[Row]:
        return list(await store.rows_of(name))

    return region.with_store(read)


def waits(region: RunningRegion, name: str) -> None:
    """Until an enactor has said that it leaves the endpoint alone."""

    async def read(store: StorePort) -> Any:
        return [found.get(name) for found in (await store.findings()).values()]

    region.until(
        lambda: any(each and each[0] == "ask" for each in region.with_store(read)), 10, f"{name} waits to be adopted"
    )


def error_of(region: RunningRegion, *words: str, code: int = 1) -> dict[str, str]:
    """The refusal's document."""
    return json.loads(region.fencepost(*words, "--json", ok=(code,)))["error"]  # type: ignore[no-any-return]


def test_adopting_writes_a_marker_beside_what_stands_and_only_the_next_plan_moves_on(region: RunningRegion) -> None:
    """external-dns takes over by overwriting; here the row that takes over has exactly what a person saw."""
    strange(region, API, ODD)
    waits(region, API)
    assert region.addresses(API) == ODD
    assert region.marker(API) is None
    plan = region.fencepost("plan")
    assert f"fencepost adopt {API}" in plan
    refused = error_of(region, "adopt", API, code=2)
    assert "takes 2 of 3 addresses" in refused["what"]
    assert refused["hint"] == f"add --confirm {API}"
    region.fencepost("adopt", API, "--confirm", API, "--reason", "moving in")
    region.until(lambda: region.addresses(API) == SIX, 10, "the next plan brings what region.toml says")
    taken = next(row for row in rows(region, API) if row.adopt)
    assert (list(taken.content.a), taken.content.ttl) == (ODD, 300)
    number = taken.generation.number

    def said(begins: str) -> bool:
        return any(row.on == API and row.text.startswith(begins) for row in region.history("enacted"))

    # A line is written after what it tells of has been done.
    region.until(lambda: said(f"- -> {number} in") and said(f"{number} -> "), 10, "history tells of both writes")
    assert any("takes over what stands" in row.text for row in region.history("plan"))
    assert any(row.on == API and "moving in" in row.text for row in region.history("operator"))
    region.until(region.converged, 10, "all as planned")


def test_all_takes_those_that_wait_and_no_others(region: RunningRegion) -> None:
    """An endpoint that is ours already isn't asked about; done twice it is no error."""
    strange(region, WWW, [*SIX[:5], "127.0.9.9"])
    waits(region, WWW)
    generation = region.marker(API)
    assert json.loads(region.fencepost("adopt", "--all", "--yes", "--json")) == {"done": "adopt", "on": [WWW]}
    assert region.marker(API) == generation
    region.until(region.converged, 10, "all as planned")
    assert "nothing waits" in region.fencepost("adopt", "--all", "--yes")
    assert "ours already" in error_of(region, "adopt", WWW, "--yes")["what"]


def test_another_owners_records_are_never_adopted(region: RunningRegion) -> None:
    """Refused with who owns it, and nothing about it changes; the rest of --all goes on without it."""
    marker = region.marker(API)
    assert marker is not None
    theirs = marker.encode()[0].decode().replace("owner=adopt", "owner=eu-2")
    update(
        region,
        ("delete", f"_fencepost.{API}", "TXT"),
        ("add", f"_fencepost.{API}", 60, "TXT", f'"{theirs}"'),  # type: ignore[arg-type]
    )
    refused = error_of(region, "adopt", API, "--yes")
    assert 'its owner is "eu-2"' in refused["what"]
    assert refused["kind"] == "refused"
    assert "nothing waits" in region.fencepost("adopt", "--all", "--yes")
    still = region.marker(API)
    assert still is not None
    assert still.owner == "eu-2"
    update(region, ("delete", f"_fencepost.{API}", "TXT"))
    region.until(region.converged, 10, "ours again: a set that a kept row knows")


def test_a_held_endpoint_is_not_adopted_into_its_hold(region: RunningRegion) -> None:
    """Adopting would put the hold in place of what stands; for a withdrawal that is nothing at all."""
    region.fencepost("withdraw", WWW, "--reason", "a test", "--confirm", WWW)
    strange(region, WWW, ODD)
    refused = error_of(region, "adopt", WWW, "--yes")
    assert "is withdrawn" in refused["what"]
    assert region.addresses(WWW) == ODD
    update(region, ("delete", WWW, "A"))
    region.until(lambda: region.marker(WWW) is not None, 10, "the tombstone stands again")
    region.fencepost("resume", WWW)
    region.until(region.converged, 10, "all as planned")


def test_what_another_changes_while_it_waits_is_not_taken_over(region: RunningRegion) -> None:
    """The order names the exact set seen: the one that came after it is asked about anew."""
    strange(region, API, OTHERS)
    waits(region, API)
    planner = region.signal("planner", 19)  # SIGSTOP: the order waits
    process = asyncio.run(changed_meanwhile(region))
    os.kill(planner, 18)
    assert process == 1
    assert region.addresses(API) == LATER
    region.fencepost("adopt", API, "--confirm", API)
    region.until(region.converged, 10, "all as planned")


async def changed_meanwhile(region: RunningRegion) -> int:
    """Adopt while the planner stands still and another changes the records; the exit code."""
    words = ("adopt", API, "--confirm", API, "--config", str(region.config))
    running = await asyncio.create_subprocess_exec(str(FENCEPOST), *words, cwd=region.folder)

    async def ordered() -> bool:
        store = assembly.open_store(region.region)
        try:
            return bool((await store.inputs()).orders)
        finally:
            await store.close()

    patience = Patience(20)
    while not await ordered():
        assert not patience.over(), "the order never came"
        await asyncio.sleep(0.05)
    strange(region, API, LATER)
    return await asyncio.wait_for(running.wait(), patient(20))
