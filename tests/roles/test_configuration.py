"""Loading a configuration: what it ends besides what it begins."""

import asyncio
from pathlib import Path

from fencepost import assembly
from fencepost.roles import configuration
from fencepost.roles.status.rejected import OnDisk, put_rejected, rejected
from fencepost.settings import load
from fencepost.settings.initial import INITIAL


def test_a_start_with_a_good_file_ends_the_refusal_of_a_wrong_one(tmp_path: Path) -> None:
    """A typo was refused, mended, and the region started again: status still asked for a person because of it."""
    path = tmp_path / "region.toml"
    path.write_text(INITIAL)
    region = load(str(path), {})

    async def refusals(*, put: bool) -> bool:
        store = assembly.open_store(region, create=True)
        try:
            if put:
                await put_rejected(store, "region.toml:7: unknown key", 1)
            return rejected(await store.findings()) is not None
        finally:
            await store.close()

    assembly.load_configuration(region)
    assert asyncio.run(refusals(put=True))
    assembly.load_configuration(region)
    assert not asyncio.run(refusals(put=False))


def test_the_file_is_judged_anew_when_it_was_written(tmp_path: Path) -> None:
    """And only then: a file of a hundred thousand endpoints takes seconds."""
    path, seen = tmp_path / "region.toml", OnDisk()

    async def good() -> bool:
        return await seen.look(str(path)) is not None

    assert not asyncio.run(good())
    path.write_text(INITIAL)
    assert asyncio.run(good())
    path.write_text(INITIAL.replace("probe", "prob"))
    assert not asyncio.run(good())


def test_whoever_loads_a_configuration_the_history_says_who_and_what(tmp_path: Path) -> None:
    """`enact` and `up` left no line where the file they loaded changed no endpoint; only `reload` did."""
    path = tmp_path / "region.toml"
    path.write_text(INITIAL)
    region = load(str(path), {})
    path.write_text(INITIAL.replace('"192.0.2.10"', '"192.0.2.10", "192.0.2.99"', 1))
    more = load(str(path), {})

    async def act() -> list[tuple[str, str, str, str]]:
        store = assembly.open_store(region, create=True)
        try:
            for each in (region, more, more):
                await configuration.put(store, each, by="ada")
            return [(row.kind, row.on, row.by, row.text) for row in await store.history()]
        finally:
            await store.close()

    assert asyncio.run(act()) == [("operator", region.name, "ada", "reload: revision 2, 1 target new")]
