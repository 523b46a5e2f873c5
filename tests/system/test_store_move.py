"""A running region moves to another store: no empty answer, no number twice, nothing forgotten."""

from pathlib import Path

import pytest
from callers import Callers
from grounds import fresh_dsn
from regions import RunningRegion

from fencepost.assembly.places import write_secret

NAMES = ["api.example.test", "www.example.test"]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_region_moves_to_another_store_by_the_runbook(tmp_path: Path, kind: str) -> None:
    """docs/operating/store-move.md, step by step. The DNS server stays; everything else is ended and started."""
    with RunningRegion(tmp_path, on="bind+sqlite") as region:
        region.newer_plan(31)
        region.newer_plan(32)
        region.fencepost("drain", "127.0.1.1", "--for", "1h", "--reason", "moving house", "--yes")
        region.until(lambda: len(region.addresses(NAMES[0])) == 5, 10, "the drain shows")
        second = tmp_path / "new.toml"
        other = 'path = "moved.db"' if kind == "sqlite" else 'kind = "postgresql"\ndsn = { file = "moved.dsn" }'
        if kind == "postgresql":
            write_secret(tmp_path / "moved.dsn", fresh_dsn())
        text = region.config.read_text().replace('path = "demo.db"', other)
        second.write_text(text.replace('ttl = "5s"', 'ttl = "33s"'))  # as the region has it when it stops
        region.fencepost_alone("check", str(second))
        assert "copied to plan" in region.fencepost_alone("store", "copy", str(region.config), str(second))
        region.newer_plan(33)
        before = {name: region.marker(name) for name in NAMES}
        region.stop()
        said = region.fencepost_alone("store", "copy", str(region.config), str(second))
        assert "1 plan with 2 rows" in said
        second.rename(region.config)
        region.reopen(store=kind)
        region.start()
        with Callers(region.dns_port, NAMES) as callers:
            region.until(region.converged, 10, "converged on the new store")
            assert {name: region.marker(name) for name in NAMES} == before, "nothing had to be written"
            assert "moving house" in region.fencepost("status", ok=(0, 1))
            region.newer_plan(40)
            after = region.marker(NAMES[0])
            for ttl in range(41, 46):
                region.newer_plan(ttl)
        callers.fine()
        stood = before[NAMES[0]]
        assert after is not None
        assert stood is not None
        assert after.generation.number == stood.generation.number + 1
        assert after.store != stood.store


def test_a_region_that_starts_with_an_empty_store_plans_on_from_dns(tmp_path: Path) -> None:
    """Without a copy: markers in DNS are adopted, the drain comes back from the enactors' files."""
    with RunningRegion(tmp_path, on="bind+sqlite") as region:
        region.newer_plan(31)
        region.fencepost("drain", "127.0.1.1", "--for", "1h", "--reason", "moving house", "--yes")
        region.until(lambda: len(region.addresses(NAMES[0])) == 5, 10, "the drain shows")
        region.until(region.converged, 10, "converged")
        before = region.marker(NAMES[0])
        region.stop()
        region.config.write_text(region.config.read_text().replace('path = "demo.db"', 'path = "empty.db"'))
        region.reopen(store="sqlite")
        region.start()
        with Callers(region.dns_port, NAMES) as callers:
            region.until(region.converged, 15, "converged on the empty store")
            after = region.marker(NAMES[0])
            for ttl in range(40, 46):
                region.newer_plan(ttl)
        callers.fine()
        assert before is not None
        assert after is not None
        assert after.generation >= before.generation
        assert len(region.addresses(NAMES[0])) == 5
