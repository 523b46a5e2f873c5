"""BIND with many names: fencepost beside octoDNS on the same names, and three enactors at once beside a bare loop.

    python -m bench.octodns_bind [names [endpoints]]

First: so many names (100,000) of two addresses on one BIND; octoDNS plans and applies a change of one in a hundred, as
one run; then fencepost does, on the same names (with its markers beside them). CPU is that of the process alone, memory
its VmHWM; BIND's own is nobody's. octoDNS's source is YAML, ours a SQLite store, each as it is meant.

Second: so many endpoints (30,000) of ten addresses are planned and enacted by three enactors at once on an empty
domain; then the very same UPDATE messages are sent to a fresh BIND by a loop that does nothing else: no reading, no
store, no reading back. Both end with the answer to the last UPDATE that was taken: from then on all is visible, and a
reader of its own looks whether it is. How long each of the three takes to have read back what the others wrote is told
too, beside the same loop among three processes that only read. All of that again with enactors that give way to the
server (Nice=10, docs/start/systemd.md), as is wise where both share two cores.
"""

import asyncio
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "contracts"))

import msgspec
from free_ports import free_port
from servers import DOMAIN, KEY_NAME, KEY_SECRET, ZONE, Served, bind

from bench.figures import tell
from bench.many_names import Enacting, Planning, Pool, cpu, measured, peak_mb, prepare, region_of
from fencepost import assembly
from fencepost.adapters.dns_rfc2136 import Rfc2136Dns, Rfc2136Settings
from fencepost.adapters.dns_session import Session
from fencepost.adapters.dns_signature import Signer
from fencepost.core.fence import Marker
from fencepost.core.instant import SECOND
from fencepost.ports import PortError
from fencepost.roles import configuration
from fencepost.roles.process import fork
from fencepost.settings import Region

ROOT = Path(__file__).parent.parent
PEER = ROOT / ".venv/peers/bin/python"
TWO: Pool = {"a": ("192.0.2.1",), "b": ("192.0.2.2",)}
TEN: Pool = {zone: tuple(f"192.0.{at}.{n}" for n in range(1, most + 1)) for at, (zone, most) in
             enumerate({"a": 4, "b": 3, "c": 3}.items(), 1)}  # fmt: skip
NEW = "192.0.2.77"
READS_EACH_S = 0.05
"""How often a reader beside the bare loop asks; what is read seldom lasts longer once the last UPDATE is answered."""
THREADS = os.cpu_count() or 1
"""What named takes by itself. With one, every question waits behind the syncing of its journal."""
NICE = 10
"""What docs/start/systemd.md advises for enactors on the primary's own machine."""


def on_bind(folder: Path, endpoints: int, port: int, targets: Pool) -> Region:
    """A region whose provider is the BIND on that port."""
    key = folder / "tsig.key"
    key.write_text(f'key "{KEY_NAME}" {{ algorithm hmac-sha256; secret "{KEY_SECRET}"; }};\n')
    key.chmod(0o600)
    provider = f'provider = "rfc2136"\nserver = "127.0.0.1:{port}"\nkey = {{ file = "tsig.key" }}\n'
    return region_of(folder, endpoints, provider=provider, targets=targets)


def octodns_config(folder: Path, names: int, port: int) -> Path:
    """octoDNS's view of the same names, with another address for one in a hundred."""
    source = folder / "wanted"
    source.mkdir()
    with (source / f"{DOMAIN}.yaml").open("w") as file:
        file.write(f'"":\n  - {{type: MX, values: [{{exchange: mail.{DOMAIN}., preference: 10}}], ttl: 300}}\n')
        file.write(f"  - {{type: NS, ttl: 300, value: ns.{DOMAIN}.}}\n")
        for at in range(names):
            last = NEW if at % 100 == 0 else "192.0.2.2"
            file.write(f"e{at:06}: {{type: A, ttl: 30, values: [192.0.2.1, {last}]}}\n")
        file.write("mail: {type: A, ttl: 300, value: 127.0.0.2}\nns: {type: A, ttl: 300, value: 127.0.0.1}\n")
    config = folder / "octodns.yaml"
    config.write_text(
        f"manager:\n  plan_outputs:\n    clock: {{class: octodns_run.Clock}}\nproviders:\n"
        f"  wanted: {{class: octodns.provider.yaml.YamlProvider, directory: {source}, enforce_order: false}}\n"
        f"  bind: {{class: octodns_bind.Rfc2136Provider, host: 127.0.0.1, port: {port}, timeout: 600,\n"
        f"         key_name: {KEY_NAME}, key_secret: {KEY_SECRET}, update_batch_size: 400}}\n"
        f"zones:\n  {DOMAIN}.: {{sources: [wanted], targets: [bind]}}\n"
    )
    return config


def addresses_of(names: int) -> str:
    """The zone file's lines for the names, without markers."""
    return "".join(f"e{at:06} 30 IN A 192.0.2.1\n 30 IN A 192.0.2.2\n" for at in range(names))


def octodns(names: int) -> dict[str, float]:
    """Plan and apply one change in a hundred."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with bind(folder, zone=ZONE + addresses_of(names)) as served:
            command = [str(PEER), str(ROOT / "bench/octodns_run.py"), str(octodns_config(folder, names, served.port))]
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        assert done.returncode == 0, done.stderr[-2000:]
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def markers(region: Region) -> str:
    """The zone file's markers of every row in the store: as if all had been enacted."""

    async def read() -> str:
        store = assembly.open_store(region)
        _, rows = await store.newest_rows(None)
        lines = []
        for row in rows:
            text = Marker.of(region.owner, row.store, row.generation, row.content, row.hold, 1).encode()[0].decode()
            lines.append(f'_fencepost.{row.name}. 60 IN TXT "{text}"\n')
        await store.close()
        return "".join(lines)

    return asyncio.run(read())


def fencepost(names: int) -> dict[str, float]:
    """Cold read and compare, warm pass, one change in a hundred; planner and enactor in a process each."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        region = on_bind(folder, names, port, TWO)
        asyncio.run(prepare(region, TWO))
        figures: dict[str, float] = {}

        async def plan() -> dict[str, float]:
            planning = Planning(region, assembly.open_store(region))
            return {"planner: first plan, CPU s": await cpu(planning.idle), "planner: peak MB": peak_mb()}

        async def cold() -> dict[str, float]:
            enacting = Enacting(region, assembly.open_store(region), folder / "cold.known")
            spent = await cpu(enacting.idle)
            found = {"cold, CPU s": spent, "cold, peak MB": peak_mb()}
            assert len(list(enacting.hands.dns.names())) == names
            assert not enacting.hands.dirty, "all stood as planned"
            await enacting.idle()
            warm = sorted([await cpu(enacting.idle) for _ in range(9)])
            return found | {"warm pass, CPU ms": warm[4] * 1e3}

        async def apply() -> dict[str, float]:
            store = assembly.open_store(region)
            planning, enacting = Planning(region, store), Enacting(region, store, folder / "apply.known")
            await planning.idle()
            await enacting.idle()
            return await changed(planning, enacting)

        with bind(folder, port=port):
            figures |= measured("plan", folder, plan)
        with bind(folder, zone=ZONE + addresses_of(names) + markers(region), port=port):
            figures |= measured("cold", folder, cold)
            figures |= measured("apply", folder, apply)
        return figures


async def changed(planning: Planning, enacting: Enacting) -> dict[str, float]:
    """Another TTL for one endpoint in a hundred, planned and enacted by roles that stand."""
    loaded = configuration.decode((await planning.hands.store.inputs()).config)
    assert loaded is not None
    names = [endpoint.name for endpoint in loaded.region.endpoints[::100]]
    for each in names:
        planning.hands.endpoints[each] = msgspec.structs.replace(planning.hands.endpoints[each], ttl_s=61)
    planning.hands.dirty.update(names)
    planned = await cpu(planning.idle)
    enacted = await cpu(enacting.idle)
    assert all(enacting.hands.dns.live(each).ttl == 61 for each in names)
    return {"1 % planned, CPU s": planned, "1 % enacted, CPU s": enacted}


def beside(names: int) -> None:
    """Both, and their ratios."""
    ours, theirs = fencepost(names), octodns(names)
    prefix = f"{names:,} names on BIND: "
    for word, value in ours.items():
        tell(prefix + word, value, "")
    apply = theirs["all_cpu_s"] - theirs["plan_cpu_s"]
    tell(prefix + "octoDNS: plan, CPU s", theirs["plan_cpu_s"], "", f"{theirs['plan_s']:.0f} s")
    tell(prefix + "octoDNS: 1 % applied, CPU s", apply, "", f"{theirs['changes']:,.0f} changes")
    tell(prefix + "octoDNS: peak MB", theirs["peak_mb"], "")
    tell("cold read and compare ÷ octoDNS's plan", ours["cold, CPU s"] / theirs["plan_cpu_s"], "× CPU")
    both = ours["planner: first plan, CPU s"] + ours["cold, CPU s"]
    tell("planner and enactor, both cold ÷ octoDNS's plan", both / theirs["plan_cpu_s"], "× CPU")
    tell("peak ÷ octoDNS's", ours["cold, peak MB"] / theirs["peak_mb"], "×")
    enacted = ours["1 % planned, CPU s"] + ours["1 % enacted, CPU s"]
    tell("1 % planned and enacted ÷ octoDNS's plan and apply", enacted / theirs["all_cpu_s"], "× CPU", "ours stands")
    whole = (both + enacted) / theirs["all_cpu_s"]
    tell("from nothing to 1 % enacted ÷ octoDNS's plan and apply", whole, "× CPU")
    tell("1 % enacted ÷ octoDNS's apply alone", ours["1 % enacted, CPU s"] / apply, "× CPU")


def enactor(region: Region, folder: Path, zone: str, niceness: int) -> None:
    """One enactor's process, until nothing is left to do: its figures and its UPDATE messages, in files."""

    async def main() -> None:
        os.nice(niceness)
        enacting = Enacting(region, assembly.open_store(region), folder / f"{zone}.known", zone)
        sent: list[bytes] = []
        calls = {"update": 0, "refused": 0, "read": 0, "wrote": 0.0}
        port = enacting.dns[DOMAIN]
        assert isinstance(port, Rfc2136Dns)
        updates = port._session.updates

        async def counted(messages: Iterable[tuple[bytes, str]]) -> list[int | PortError]:
            taken: list[bytes] = []

            def noted() -> Iterator[tuple[bytes, str]]:
                for message, doing in messages:
                    taken.append(message)
                    yield message, doing

            rcodes = await updates(noted())
            calls["update"] += len(taken)
            calls["refused"] += sum(rcode != 0 for rcode in rcodes)
            if 0 in rcodes:
                calls["wrote"] = time.monotonic()
            sent.extend(message for message, rcode in zip(taken, rcodes, strict=True) if rcode == 0)
            return rcodes

        def count(session: Session) -> None:
            take = session.take

            async def taken(*words):  # type: ignore[no-untyped-def]
                calls["read"] += 1
                return await take(*words)

            session.take = taken  # type: ignore[method-assign]

        port._session.updates = counted  # type: ignore[method-assign]
        count(port._session)
        while True:
            await enacting.idle()
            if enacting.hands.head is not None and not len(enacting.hands.dirty):
                break
            await asyncio.sleep(0.05)
        ended = {"at": time.monotonic(), "peak_mb": peak_mb(), "cpu_s": time.process_time()}
        (folder / f"{zone}.json").write_text(json.dumps(calls | ended))
        (folder / f"{zone}.sent").write_bytes(pickle.dumps(sent))

    pid = fork(f"enactor-{zone}", main, folder)
    (folder / f"{zone}.pid").write_text(str(pid))


async def bare(served: Served, messages: list[bytes]) -> None:
    """Send each message, one after the other, and look at nothing but its answer."""
    signer = Signer(KEY_NAME, "hmac-sha256", KEY_SECRET)
    session = Session(("127.0.0.1", served.port), DOMAIN, signer, KEY_NAME, 60.0)
    for message in messages:
        assert await session.update(message, "UPDATE") == 0
    session.close()


def port_to(served: Served) -> Rfc2136Dns:
    """Our adapter on a BIND, patient."""
    settings = Rfc2136Settings(("127.0.0.1", served.port), DOMAIN, KEY_NAME, KEY_SECRET, "bench", timeout=60 * SECOND)
    return Rfc2136Dns(settings)


def reader(served: Served, folder: Path, name: str) -> None:
    """A process that judges nothing and writes nothing: it reads on until there is a file ``sent``, and once more."""

    async def main() -> None:
        port, sent = port_to(served), folder / "sent"
        while True:
            last = sent.exists()
            await port.read()
            if last:
                break
            await asyncio.sleep(READS_EACH_S)
        (folder / f"{name}.at").write_text(str(time.monotonic()))
        await port.close()

    (folder / f"{name}.pid").write_text(str(fork(f"reader-{name}", main, folder)))


def bare_beside_readers(messages: list[bytes], endpoints: int) -> float:
    """How long the bare loop takes on a fresh BIND until three other processes have read all that it wrote."""
    with tempfile.TemporaryDirectory() as name, bind(Path(name), threads=THREADS) as served:
        folder = Path(name)
        for one in "abc":
            reader(served, folder, one)
        time.sleep(4 * READS_EACH_S)
        start = time.monotonic()
        asyncio.run(bare(served, messages))
        (folder / "sent").touch()
        for one in "abc":
            _, status = os.waitpid(int((folder / f"{one}.pid").read_text()), 0)
            assert status == 0, (folder / f"reader-{one}.log").read_text()[-2000:]
        asyncio.run(see_all(served, endpoints))
        return max(float((folder / f"{one}.at").read_text()) for one in "abc") - start


async def see_all(served: Served, endpoints: int) -> None:
    """A reader of its own sees every endpoint, whole."""
    port = port_to(served)
    await port.read()
    found = [port.live(name) for name in port.names()]
    assert len(found) == endpoints, len(found)
    assert all(live.verified() and len(live.a) == 10 for live in found)
    await port.close()


def three(endpoints: int, niceness: int = 0) -> None:
    """Three enactors at once, then the bare loop."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        region = on_bind(folder, endpoints, port, TEN)
        asyncio.run(prepare(region, TEN))

        async def plan() -> dict[str, float]:
            await Planning(region, assembly.open_store(region)).idle()
            return {"peak MB": peak_mb()}

        with bind(folder, port=port, threads=THREADS) as served:
            began = time.monotonic()
            planner = measured("plan", folder, plan)
            planned = time.monotonic()
            for zone in "abc":
                enactor(region, folder, zone, niceness)
            for zone in "abc":
                _, status = os.waitpid(int((folder / f"{zone}.pid").read_text()), 0)
                assert status == 0, (folder / f"enactor-{zone}.log").read_text()[-2000:]
            asyncio.run(see_all(served, endpoints))
        calls = [json.loads((folder / f"{zone}.json").read_text()) for zone in "abc"]
        messages = [message for zone in "abc" for message in pickle.loads((folder / f"{zone}.sent").read_bytes())]
    with tempfile.TemporaryDirectory() as name, bind(Path(name), threads=THREADS) as served:
        start = time.monotonic()
        asyncio.run(bare(served, messages))
        loop = time.monotonic() - start
        asyncio.run(see_all(served, endpoints))
    beside = bare_beside_readers(messages, endpoints)
    visible, took = (max(each[end] for each in calls) - planned for end in ("wrote", "at"))
    at = f" at nice {niceness}" if niceness else ""
    prefix = f"{endpoints:,} endpoints of 10, three enactors{at}: "
    tell(prefix + "planned, s", planned - began, "")
    tell(prefix + "all visible, s", visible, "", f"{endpoints / visible:,.0f} endpoints a second")
    tell(prefix + "read back by each of them, s", took, "", f"{loop / took:.2f} of the bare loop's rate")
    tell(prefix + "UPDATEs", sum(each["update"] for each in calls), "", f"{sum(e['refused'] for e in calls)} refused")
    tell(prefix + "transfers", sum(each["read"] for each in calls), "")
    tell(prefix + "CPU of the three, s", sum(each["cpu_s"] for each in calls), "")
    tell("peak of a role, MB", max(planner["peak MB"], *(each["peak_mb"] for each in calls)), "")
    tell("the same messages by a bare loop, s", loop, "", f"{endpoints / loop:,.0f} endpoints a second")
    tell("the same loop until three others have read it all, s", beside, "", f"{loop / beside:.2f} of it alone")
    tell(f"three enactors' endpoints a second{at} ÷ a bare loop's", loop / visible, "×")


def main() -> None:
    """Both parts."""
    names, endpoints = (int(word) for word in (*sys.argv[1:], *("100000", "30000")[len(sys.argv[1:]) :]))
    beside(names)
    three(endpoints)
    three(endpoints, NICE)
    tell("this process, peak MB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "")


if __name__ == "__main__":
    main()
