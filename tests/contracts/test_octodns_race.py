"""octoDNS 1.22 and fencepost, each with two writers racing on one BIND: whose stale plan wins?

octoDNS doesn't claim to take care of concurrent writers; this shows what that means, with octoDNS itself, and that a
fenced write refuses the same interleaving. docs/concepts/octodns.md tells it, and what octoDNS does that we don't.
"""

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dns.message
import dns.query
import pytest
from dns_scene import DOMAIN, change, standing
from dns_stages import ServerStage
from enacting import Enacting, is_update, stands
from servers import KEY_NAME, KEY_SECRET, Served, bind

from fencepost.core.zone import Live

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv/peers/bin/python"
WRITER = Path(__file__).with_name("octodns_writer.py")
NAME = f"api.{DOMAIN}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One BIND for the module."""
    with bind(tmp_path_factory.mktemp("bind")) as running:
        yield running


def config(folder: Path, served: Served, address: str) -> Path:
    """What one person has: the domain as they want it, in octoDNS's YAML, with one address of the endpoint."""
    zones = folder / address
    zones.mkdir()
    (zones / f"{DOMAIN}.yaml").write_text(f"""
"":
  - {{type: MX, ttl: 300, values: [{{exchange: mail.{DOMAIN}., preference: 10}}]}}
  - {{type: NS, ttl: 300, value: ns.{DOMAIN}.}}
api: {{type: A, ttl: 30, value: {address}}}
mail: {{type: A, ttl: 300, value: 127.0.0.2}}
ns: {{type: A, ttl: 300, value: 127.0.0.1}}
""")
    path = folder / f"{address}.yaml"
    path.write_text(f"""
manager:
  plan_outputs:
    held: {{class: octodns_writer.Held}}
providers:
  wanted: {{class: octodns.provider.yaml.YamlProvider, directory: {zones}, enforce_order: false}}
  bind:
    class: octodns_bind.Rfc2136Provider
    host: 127.0.0.1
    port: {served.port}
    key_name: {KEY_NAME}
    key_secret: {KEY_SECRET}
zones:
  {DOMAIN}.: {{sources: [wanted], targets: [bind]}}
""")
    return path


@contextmanager
def octodns(path: Path, *words: str) -> Iterator[Callable[[], str]]:
    """octoDNS, with its plan made; what is given applies it and says what octoDNS said."""
    if not PYTHON.exists():
        pytest.skip("octoDNS is not installed (make test makes .venv/peers)")
    command = [str(PYTHON), str(WRITER), str(path), *words]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True, cwd=WRITER.parent) as process:
        assert process.stdout is not None
        planned = process.stdout.readline()
        assert planned == "planned\n", process.communicate()[1][-2000:]

        def apply() -> str:
            said, wrong = process.communicate("\n", timeout=60)
            assert process.returncode == 0, wrong[-2000:]
            return said.strip()

        try:
            yield apply
        finally:
            if process.poll() is None:
                process.kill()


def addresses(served: Served, name: str = NAME) -> list[str]:
    """What callers get."""
    answer = dns.query.udp(dns.message.make_query(name, "A"), "127.0.0.1", 5, served.port)
    return sorted(str(rdata) for rrset in answer.answer for rdata in rrset)


@pytest.mark.parametrize("words", [(), ("--checksum",)], ids=["plain", "reviewed-by-checksum"])
def test_octodns_a_stale_plan_wins(served: Served, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Plan A is made; plan B is made and applied; A is applied: A's older view replaces B's, and nobody is told.

    The same with octoDNS's checksum, which compares the plan applied with the plan reviewed, not with the zone.
    """
    stage = ServerStage(served)
    stage.run(lambda: stage.hand(Live(NAME, None, ("192.0.2.1",), (), 30)))
    with octodns(config(tmp_path, served, "192.0.2.10"), *words) as apply_a:
        with octodns(config(tmp_path, served, "192.0.2.20"), *words) as apply_b:
            assert addresses(served) == ["192.0.2.1"]
            assert apply_b() == "applied 1"
        assert addresses(served) == ["192.0.2.20"]
        assert apply_a() == "applied 1", "it takes what it wrote for done"
    assert addresses(served) == ["192.0.2.10"], "planned from 192.0.2.1, applied over 192.0.2.20"


def test_fencepost_the_stale_plan_is_refused(served: Served) -> None:
    """The same interleaving by two fenced writers: A is refused, and B's value stays. (One read, held; one write.)"""
    stage = ServerStage(served)

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        a, b = stage.port(), stage.port()
        await a.read()
        await b.read()
        held = change(a.live(NAME), 2, "192.0.2.10")
        assert await b.commit((change(b.live(NAME), 3, "192.0.2.20"),))
        assert not await a.commit((held,))
        await a.read()
        assert a.live(NAME) == standing(NAME, 3, "192.0.2.20")
        assert addresses(served) == ["192.0.2.20"]

    stage.run(act)


def test_fencepost_an_enactor_held_before_its_write_is_refused(served: Served, tmp_path: Path) -> None:
    """Whole enactors, as in production: A's UPDATE is held on its way while B enacts a newer plan. A's is refused by
    BIND; A reads again, finds the newer plan done, and writes nothing more."""

    async def act() -> None:
        async with Enacting(served, tmp_path) as world:
            name = f"held.{DOMAIN}"
            await world.publish({name: ["192.0.2.1"]})
            await world.settle()
            await world.publish({name: ["192.0.2.10"]})  # plan 2, which A will carry
            held, go = asyncio.Event(), asyncio.Event()
            a = world.enactor()
            commit = a.dns.commit

            async def late(batch):  # type: ignore[no-untyped-def]
                held.set()
                await go.wait()
                return await commit(batch)

            a.dns.commit = late  # type: ignore[method-assign]
            running = asyncio.ensure_future(world.run(a, lambda: stands(a, name, ["192.0.2.20"], 3)))
            await held.wait()
            await world.publish({name: ["192.0.2.20"]})  # plan 3
            await world.settle()
            assert addresses(served, name) == ["192.0.2.20"]
            sent = len(world.door.updates())
            go.set()
            await running
            assert addresses(served, name) == ["192.0.2.20"]
            updates = [message for message in world.door.asked_tcp if is_update(message)][sent:]
            assert len(updates) == 1, "the stale one, refused; none after it"

    asyncio.run(act())
