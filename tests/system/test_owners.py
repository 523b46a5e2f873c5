"""Several writers in one domain: other owners, the same owner with another store, and records that nobody marked."""

from collections.abc import Callable
from pathlib import Path

import dns.query
import dns.tsig
import dns.update
from regions import RunningRegion

from fencepost import assembly
from fencepost.ports import StorePort, Unavailable
from fencepost.roles import configuration

NAME = "api.example.test"


def beside(first: RunningRegion, text: str) -> str:
    """A region.toml text that writes into the first region's server, with its key."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("provider"):
            key = first.state / "tsig.key"
            line = f'provider = "rfc2136"\nserver = "127.0.0.1:{first.dns_port}"\nkey = {{ file = "{key}" }}'
        if line.startswith(("listen", "transfer")) and "api" not in lines[-1]:
            continue
        lines.append(line)
    return "\n".join(lines) + "\n"


def second_region(
    first: RunningRegion, folder: Path, *, name: str, owner: str, edit: Callable[[str], str]
) -> RunningRegion:
    """Another region whose records live in the first one's domain."""
    folder.mkdir()
    made = RunningRegion(folder, name=name, owner=owner, edit=lambda text: edit(beside(first, text)))
    made.dns_port = first.dns_port
    return made


def findings(region: RunningRegion) -> dict[str, tuple[str, str]]:
    """What the region's enactors leave alone, and why."""

    async def read(store: StorePort) -> dict[str, tuple[str, str]]:
        return {name: found for by in (await store.findings()).values() for name, found in by.items()}

    return region.with_store(read)


def test_regions_with_different_owners_leave_each_others_records_alone_and_say_so(tmp_path: Path) -> None:
    """external-dns #5846 with two owners: the marker says whose an endpoint is."""
    first_folder = tmp_path / "first"
    first_folder.mkdir()
    with RunningRegion(first_folder, name="eu-1") as first:
        first.until(first.converged, 10, "the first region has its records")
        before = first.marker(NAME)
        second = second_region(
            first,
            tmp_path / "second",
            name="eu-2",
            owner="eu-2",
            edit=lambda text: text.replace("www.example.test", "db.example.test"),
        )
        try:
            second.start()
            second.until(lambda: second.marker("db.example.test") is not None, 10, "its own endpoint is published")
            second.until(
                lambda: findings(second).get(NAME, ("",))[0] == "foreign", 10, "the other's is left alone, and said"
            )
            assert "eu-1" in findings(second)[NAME][1]
            first.change_ttl(33)
            first.until(lambda: first.ttl(NAME) == 33, 10, "the first goes on")
            after, theirs = first.marker(NAME), first.marker("db.example.test")
            assert before is not None
            assert after is not None
            assert after.owner == before.owner == "eu-1"
            assert theirs is not None
            assert theirs.owner == "eu-2"
        finally:
            second.stop()


def test_of_two_stores_with_one_owner_one_stops_after_three_replacements(tmp_path: Path) -> None:
    """external-dns #5846: the same owner twice would adopt over each other for ever; one asks a person instead."""
    first_folder = tmp_path / "first"
    first_folder.mkdir()
    with RunningRegion(first_folder, owner="shared") as first:
        first.until(first.converged, 10, "the first region has its records")
        second = second_region(
            first,
            tmp_path / "second",
            name="twin",
            owner="shared",
            edit=lambda text: text.replace('ttl = "5s"', 'ttl = "9s"'),
        )
        # On one machine the second start is refused; this one plays another machine.
        second.environment["XDG_RUNTIME_DIR"] = str(second.folder)
        try:
            second.start()

            async def contested(store: StorePort) -> bool:
                try:
                    _, rows = await store.newest_rows(None)
                except Unavailable:  # its planner hasn't made it yet
                    return False
                return any(row.name == NAME and row.contested for row in rows)

            def stopped() -> list[RunningRegion]:
                return [region for region in (first, second) if region.with_store(contested)]

            first.until(lambda: stopped(), 30, "one store stops")
            loser = stopped()
            assert len(loser) == 1
            winner = second if loser == [first] else first
            settled = winner.marker(NAME)
            winner.until(lambda: winner.converged(), 15, "the other goes on")
            winner.change_ttl(44)
            winner.until(lambda: winner.ttl(NAME) == 44, 10, "and still writes")
            assert settled is not None
            loser[0].change_ttl(55)
            loser[0].until(lambda: findings(loser[0]).get(NAME) is not None, 10, "the one that stopped says so")
            assert winner.ttl(NAME) == 44
        finally:
            second.stop()


def test_an_unmarked_record_at_a_managed_name_is_refused_until_adopt(tmp_path: Path) -> None:
    """external-dns #515: what nobody marked may be somebody's."""
    with RunningRegion(tmp_path) as region:
        key = assembly.tsig_key(region.region)
        update = dns.update.UpdateMessage(
            "example.test", keyring={dns.name.from_text(key.name): dns.tsig.Key(key.name, key.secret, key.algorithm)}
        )
        update.add("old.example.test.", 300, "A", "203.0.113.7")
        assert dns.query.tcp(update, "127.0.0.1", port=region.dns_port, timeout=5).rcode() == 0

        async def manage(store: StorePort) -> None:
            from msgspec.structs import replace

            loaded = configuration.decode((await store.inputs()).config)
            assert loaded is not None
            old = replace(loaded.region.endpoints[0], name="old.example.test")
            await configuration.put(store, replace(loaded.region, endpoints=(*loaded.region.endpoints, old)))

        region.with_store(manage)
        region.until(lambda: findings(region).get("old.example.test", ("",))[0] == "ask", 10, "refused, and said")
        assert "203.0.113.7" in findings(region)["old.example.test"][1]
        assert region.addresses("old.example.test") == ["203.0.113.7"]
        assert region.marker("old.example.test") is None
        region.newer_plan_of("api.example.test", 41)
        assert region.addresses("old.example.test") == ["203.0.113.7"]
