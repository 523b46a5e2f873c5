"""The schedule of October 2025, with real processes: a stale writer wakes after 20 newer plans and a clean-up."""

import asyncio
import signal
import subprocess
import time
from pathlib import Path

import dns.rcode
import pytest
from callers import Callers
from grounds import EVERYWHERE
from patience import patient
from proxies import HoldingProxy
from regions import FENCEPOST, RunningRegion

from fencepost import assembly
from fencepost.core.traffic.janitor import Janitor, JanitorSettings
from fencepost.ports import DnsPort, StorePort
from fencepost.roles.domains import Domains
from fencepost.roles.janitor import JanitorHands
from fencepost.roles.loop import Condition, drive

NAMES = ["api.example.test", "www.example.test"]
STALE = (dns.rcode.NXRRSET, dns.rcode.YXRRSET)


def clean_up(region: RunningRegion) -> int:
    """Run the shipped janitor once, keeping nothing for rollback; how many rows are left."""

    async def work(store: StorePort) -> int:
        dns: dict[str, DnsPort] = dict(assembly.open_dns(region.region))
        settings = JanitorSettings(keep_generations=1, keep_for=0)
        hands = JanitorHands(settings, region.region.owner, Domains(dns), store)
        task = asyncio.ensure_future(drive(Janitor(settings), hands, Condition()))
        for _ in range(600):
            await asyncio.sleep(0.05)
            left = len(await store.rows_of(NAMES[0]))
            if left == 1:
                break
        task.cancel()
        return left

    return region.with_store(work)


def newer_plans(region: RunningRegion, count: int, first: int = 100) -> None:
    """So many plans, each enacted before the next is made."""
    for n in range(first, first + count):
        region.newer_plan(n)


@pytest.mark.parametrize("on", EVERYWHERE)
def test_an_enactor_stopped_between_reading_and_writing_is_fenced_when_it_wakes(tmp_path: Path, on: str) -> None:
    """Incident steps 1 to 4: A picks a plan and is delayed, B goes on, A's plan is cleaned up, A wakes."""
    with RunningRegion(tmp_path, on=on) as region, Callers(region.dns_port, NAMES) as callers:
        region.stop_before_commit("a", 20)
        live = region.marker(NAMES[0])
        newer_plans(region, 20)
        assert clean_up(region) == 1, "A's plan is cleaned up"
        after = region.marker(NAMES[0])
        assert live is not None
        assert after is not None
        assert after.generation.number >= live.generation.number + 20
        region.signal("enactor/a", signal.SIGCONT)
        region.until(lambda: any(row.by == "enactor/a" for row in region.history("fenced")), 10, "A's write is fenced")
        assert region.marker(NAMES[0]) == after, "nothing was written"
        newer_plans(region, 1, 200)
    callers.fine()


def test_an_update_held_on_the_way_and_delivered_late_and_twice_is_refused(tmp_path: Path) -> None:
    """Incident step 3, on the wire: RFC 2136 section 2.4 prerequisites refuse what a newer plan has overtaken."""
    with RunningRegion(tmp_path) as region:
        proxy = HoldingProxy(region.dns_port)
        behind = tmp_path / "behind.toml"
        text = region.config.read_text()
        key = region.state / "tsig.key"
        behind.write_text(
            text.replace(
                'provider = "embedded"',
                f'provider = "rfc2136"\nserver = "127.0.0.1:{proxy.port}"\nkey = {{ file = "{key}" }}',
            )
            .replace(f'listen = "127.0.0.1:{region.dns_port}"\n', "")
            .replace('transfer = ["127.0.0.1"]\n', "")
            .replace(f'path = "{region.region.name}.db"', f'path = "{region.region.store.path}"')
        )
        command = [str(FENCEPOST), "run", "enactor", "--zone", "a", "--config", str(behind)]
        with (tmp_path / "behind.log").open("wb") as log:
            slow = subprocess.Popen(
                command, cwd=tmp_path, stdout=log, stderr=log, env={"STATE_DIRECTORY": str(tmp_path / "behind")}
            )
        try:
            with Callers(region.dns_port, NAMES) as callers:
                others = [region.signal(f"enactor/{zone}", signal.SIGSTOP) for zone in "abc"]
                proxy.holding.set()
                region.change_ttl(50)
                assert proxy.caught.wait(patient(15)), (tmp_path / "behind.log").read_text()
                slow.send_signal(signal.SIGSTOP)
                for zone, _ in zip("abc", others, strict=True):
                    region.signal(f"enactor/{zone}", signal.SIGCONT)
                newer_plans(region, 20)
                after = region.marker(NAMES[0])
                codes = proxy.deliver() + proxy.deliver()
                assert len(codes) >= 2
                assert set(codes) <= set(STALE), [dns.rcode.to_text(dns.rcode.Rcode(code)) for code in codes]
                assert region.marker(NAMES[0]) == after
                proxy.holding.clear()
                slow.send_signal(signal.SIGCONT)
                newer_plans(region, 1, 200)
                time.sleep(0.2)
            callers.fine()
        finally:
            slow.kill()
            slow.wait()
            proxy.close()
