"""A sample's fleet as ``up`` has it: its agents among the roles, the launch of its targets, and what is said of it.

What is launched is what is missing: a sample that is started again has its instances already, and their hosts start
them anew as soon as they have told that they don't run.
"""

import contextlib
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fencepost.cli.check import counted
from fencepost.core.instant import SECOND
from fencepost.dev.sample import read_stand_ins
from fencepost.ports import PortError
from fencepost.roles.fleet.view import HostSeen, InstanceSeen
from fencepost.roles.status.running import BEATING, kind_of
from fencepost.settings import Region

OVER = ("ending", "ended")
CHECKERS_WAIT_S = 5.0
LOOK_EACH_S = 5.0
"""How old what the panel says of the fleet may be."""


class UpFleet:
    """The hosts of a sample; none (and then nothing of this does anything) for any other region."""

    def __init__(self, region: Region, *, with_targets: bool) -> None:
        from fencepost.assembly.stand_in_hosts import HostCalls, stand_in_hosts

        self.region = region
        self.hosts = stand_in_hosts(region) if with_targets else ()
        self.calls = HostCalls(self.hosts)
        self.on_call = frozenset(name for host in self.hosts for name in host.processes)
        self.seen: tuple[tuple[HostSeen, ...], tuple[InstanceSeen, ...]] = ((), ())
        self.looked = 0.0
        self._asked: dict[str, str] = {}

    def agents(self) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
        """The agents' process, and what their hosts may run, by name. Raises ``Misconfigured``."""
        from fencepost.assembly.stand_in_hosts import agents_of, instances_of

        return instances_of(self.region, self.hosts) | agents_of(self.region, self.calls)

    def roles(self) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
        """The region's roles; a sample's instances stay away longer than others, so that there is something to see."""
        from fencepost import assembly
        from fencepost.assembly.stand_in_hosts import AGAIN

        return assembly.roles_of(self.region, AGAIN) if self.hosts else assembly.roles_of(self.region)

    def wait_s(self, role: str) -> float:
        """How long a role waits for the hosts at most: a checker would find targets dead that are yet to come."""
        return CHECKERS_WAIT_S if self.hosts and role.startswith("checker/") else 0.0

    def needs_store(self, role: str) -> bool:
        """Whether a process waits for the store's server, which is started beside it: every role but the DNS server."""
        from fencepost.assembly import state_folder

        beside = self.region.store.kind in read_stand_ins(state_folder(self.region))
        return beside and kind_of(role) in (*BEATING, "api") and role != "dns"

    def store_answers(self) -> bool:
        """Whether that server takes clients. Blocks for a moment."""
        from fencepost.dev.engines import store_answers

        return store_answers(self.region)

    def part(self) -> str:
        """What of it is there, for the line that says so."""
        return f", {counted(len(self.hosts), 'agent')}" if self.hosts else ""

    def missing(self, known: Mapping[str, Mapping[str, int | None]]) -> str:
        """What isn't launched and ready yet, "" if nothing is; launches what is missing. Blocks for a moment.

        ``known`` are the supervisor's processes: what an earlier run left is ready by the rows until its host is heard.
        """
        if not self.hosts:
            return ""
        try:
            self.look()
            self.launch()
        except PortError as error:
            return error.in_full
        ready = sum(
            each.state == "ready" and bool(known.get(f"target/{each.address}", {}).get("pid")) for each in self.seen[1]
        )
        return "" if ready >= len(self.hosts) else f"{ready} of {len(self.hosts)} instances are ready"

    def look(self) -> None:
        """Read hosts and instances. Raises ``Unavailable``."""
        from fencepost.cli.fleet.reading import from_api

        hosts = from_api(self.region, "hosts", 2 * SECOND).hosts
        self.seen = hosts, from_api(self.region, "instances", 2 * SECOND).instances
        self.looked = time.monotonic()

    def launch(self) -> None:
        """Launch what a pool lacks, once: each pool's launch of this run has one key. Raises a ``PortError``."""
        from fencepost.cli.flags import author
        from fencepost.cli.fleet.asking import post

        wanted = Counter(host.pool for host in self.hosts)
        wanted.subtract(each.pool for each in self.seen[1] if each.state not in OVER)
        for pool, count in wanted.items():
            if count > 0:
                key = self._asked.setdefault(pool, f"{pool}-{os.getpid()}-{secrets.token_hex(6)}")
                post(
                    self.region,
                    "/v1/fleet/launch",
                    {"pool": pool, "count": count, "key": key, "by": author(), "reason": "the sample's targets"},
                    2 * SECOND,
                )

    def refresh(self, each_s: float = LOOK_EACH_S) -> None:
        """Read again what is older than ``each_s``. Blocks for a moment."""
        if self.hosts and time.monotonic() - self.looked > each_s:
            with contextlib.suppress(PortError):
                self.look()

    def gone(self) -> dict[str, str]:
        """What would run something at those of the hosts' addresses where nothing will by itself, by address.

        One that ended is still there in its instance's row, or that instance waits to be placed and may come back.
        """
        hosts, instances = self.seen
        left = [each for each in instances if each.state not in OVER]
        words = {each.host: each.word for each in hosts}
        if not hosts or any(each.state == "waiting" for each in left):
            return {}
        there = {each.address for each in left}
        return {
            address: (f"resume {host.name}, then " if words.get(host.name) else "") + f"fleet launch {host.pool}"
            for host in self.hosts
            for address in host.addresses
            if address not in there
        }

    def launched(self, pids: Mapping[str, int | None]) -> dict[str, list[tuple[str, int | None]]]:
        """What runs at addresses that no pool lists, with its pid, by zone."""
        found: dict[str, list[tuple[str, int | None]]] = {}
        for host in self.hosts:
            for name, address in zip(host.processes[1:], host.addresses[1:], strict=True):
                if pids.get(name):
                    found.setdefault(host.zone, []).append((address, pids[name]))
        return found

    def line(self) -> str:
        """One line for the panel; "" without a fleet, or before anything is known."""
        if not self.seen[0]:
            return ""
        leases = Counter(each.lease for each in self.seen[0])
        states = Counter(each.state for each in self.seen[1] if each.state not in OVER)
        said = [f"{counted(len(self.seen[0]), 'host')}, leases: {listed(leases)}"]
        said += [f"instances: {listed(states)}"] if states else []
        return f" FLEET  {'; '.join(said)}"


def listed(counts: Counter[str]) -> str:
    """How many of each."""
    return ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
