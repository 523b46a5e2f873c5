"""What isn't as it should be with the region's own parts: processes, store, DNS server, configuration."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from fencepost import __version__
from fencepost.core.instant import SECOND
from fencepost.ports import Beat, Misconfigured, PortError
from fencepost.roles.heartbeat import STANDBY
from fencepost.roles.status import kinds
from fencepost.roles.status.document import Problem, RoleStatus
from fencepost.roles.status.facts import Facts
from fencepost.roles.status.full_disk import NO_SPACE
from fencepost.roles.status.problems import log_of, problem
from fencepost.roles.status.rejected import on_disk, standing_refusal
from fencepost.roles.status.replaced import forgotten, replaced_at
from fencepost.roles.status.running import expected_roles, kind_of, lives, signs_of
from fencepost.settings import providers
from fencepost.settings.lookup import start_words


def upkeep_problems(facts: Facts, roles: tuple[RoleStatus, ...]) -> Iterator[Problem]:
    """All of them."""
    yield from store_problems(facts)
    yield from dns_problems(facts, roles)
    yield from config_problems(facts)
    yield from role_problems(facts, roles)


def store_problems(facts: Facts) -> Iterator[Problem]:
    """The store: away, unusable, or blocked by a writer that doesn't move."""
    error = facts.store_error
    where = facts.region.store.place
    look = f"ls -l {where}" if facts.region.store.kind == "sqlite" else "fencepost doctor"
    if isinstance(error, Misconfigured):
        yield problem(facts, kinds.STORE_MISCONFIGURED, where, of_store(error, where), error.hint or look)
    elif error is not None:
        since = facts.store.at if facts.store else 0
        does = "records are still healed, nothing new is planned"
        if facts.store is None and not facts.processes and facts.observer is None:
            does = "whether any role of the region runs can't be seen from here"
        text = f"{of_store(error, where)}; {does}"
        yield problem(facts, kinds.STORE_UNAVAILABLE, where, text, look, since)
    elif facts.store_full is not None:
        disk = f"df -h {Path(where).parent}" if facts.region.store.kind == "sqlite" else look
        text = f"{facts.store_full.what}: {facts.store_full.hint}; records are still healed, nothing new is planned"
        yield problem(facts, kinds.STORE_UNAVAILABLE, where, text, disk, person=True)
    if new_at := replaced_at(facts.store.findings, facts.now) if facts.store else 0:
        fleet = facts.region.fleet is not None
        line = "fencepost fleet hosts" if fleet else "fencepost history"
        yield problem(facts, kinds.STORE_NEW, where, forgotten(fleet=fleet), line, new_at)
    if facts.stuck_writer is not None:
        pid, seconds = facts.stuck_writer
        role = next((name for name, process in facts.processes.items() if process.pid == pid), "")
        whose = "the supervisor ends it after 10 s" if role else "it is none of this region's roles"
        text = f"pid {pid} holds the store's write lock for {seconds:.0f} s and doesn't move; {whose}"
        yield problem(facts, kinds.WRITER_STUCK, role or where, text, log_of(facts, role) if role else f"ps -fp {pid}")


def dns_problems(facts: Facts, roles: tuple[RoleStatus, ...]) -> Iterator[Problem]:
    """The provider: doesn't answer, or doesn't take what we send.

    A server of ours that doesn't answer while its role doesn't live either needs a person at once, unless a supervisor
    is there to start it again.
    """
    dead = facts.region.dns.provider == "embedded" and not lives(roles, "dns")
    supervised = "dns" in facts.processes
    error = facts.dns_error
    server = facts.region.dns.place
    where = providers.where(facts.region.dns)
    check = f"fencepost doctor --config {facts.region.path}"  # `check` asks nobody, and finds a refused key in order
    dig = f"dig @{server.host} -p {server.port} {facts.region.dns.domains[0]} SOA" if server else check
    ask = check if providers.by_api(facts.region.dns) else dig
    if isinstance(error, Misconfigured):
        text = error.in_full
        text += also(facts, roles)
        yield problem(facts, kinds.PROVIDER_REFUSES, where, text, check)
    elif error is not None:
        text = said(error).replace(f"{where}: ", "", 1)
        down = dead and not any(kind_of(role.name) == "dns" and role.state == "silent" for role in roles)
        text += "; its role doesn't run" if down else "; its role gives no sign of life" if dead else ""
        text += ", and is started again" if down and supervised else ""
        try_ = ask if not dead else log_of(facts, "dns") if supervised else start(facts)
        text += also(facts, roles)
        since, person = facts.dns.at if facts.dns else 0, dead and not supervised
        yield problem(facts, kinds.DNS_UNAVAILABLE, where, text, try_, since, person=person)
    elif facts.observer is not None and facts.observer.error and facts.now - facts.observer.at > 3 * SECOND:
        text = f"the observer's questions aren't answered: {facts.observer.error}"
        yield problem(facts, kinds.DNS_UNAVAILABLE, where, text, dig, facts.observer.at)


def server_of(facts: Facts) -> str:
    """Where the DNS server or provider is, as errors about it name it."""
    return providers.where(facts.region.dns)


def says_the_same(facts: Facts, role: RoleStatus) -> bool:
    """Whether a role only says that the DNS server is away or refuses, which is told already."""
    server = server_of(facts)
    ill = role.state in ("unavailable", "misconfigured")
    return facts.dns_error is not None and ill and bool(server) and server in (role.last_error or "")


def also(facts: Facts, roles: tuple[RoleStatus, ...]) -> str:
    """Which roles say the same of the server."""
    names = [role.name for role in roles if says_the_same(facts, role)]
    return f"; so say {', '.join(names)}" if names else ""


def config_problems(facts: Facts) -> Iterator[Problem]:
    """The file: refused, or never loaded."""
    if facts.store is None:
        return
    path = facts.region.path
    refused = standing_refusal(facts)
    if refused is not None:
        first = refused.text.splitlines()[0] if refused.text else "it has mistakes"
        words = {
            "": (f"{first}; what was loaded before stays", f"fencepost check {path}"),
            "asks": (f"{first}; what was loaded before stays", f"fencepost reload --yes --config {path}"),
            "fixed": (f"{first}; what was loaded before stays", f"fencepost plan --config {path}"),
            "good": (
                f"it was refused ({first}), and has no mistakes now: what was loaded before stays until it is reloaded",
                f"fencepost reload --config {path}",
            ),
        }
        state = on_disk(facts)
        text, try_ = words[state]
        found = problem(facts, kinds.CONFIG_REJECTED, path, text, try_, refused.at)
        yield structs.replace(found, needs_person=False) if state == "good" else found
    if facts.store.loaded is None:
        text = "the store holds no configuration, so nothing is planned"
        yield problem(facts, kinds.CONFIG_MISSING, path, text, f"fencepost reload --config {path}")


def role_problems(facts: Facts, roles: tuple[RoleStatus, ...]) -> Iterator[Problem]:
    """Processes that are gone, silent, or say themselves what they lack."""
    needed = expected_roles(facts.region)
    gone = [role for role in roles if role.name in needed and role.state == "down"]
    if roles and len(gone) == len(needed):
        blind = "" if facts.store else " as far as can be seen here (no supervisor, and no store with signs of life)"
        text = f"no role of this region runs{blind}: nothing is checked, planned or healed"
        yield problem(facts, kinds.REGION_DOWN, facts.region.name, text, start(facts))
        return
    idle = [role.pid for role in roles if stopped_here(facts, role) and role.name in needed]
    if idle and len(idle) + len(gone) == len(needed):
        text = "every role of this region is stopped (State: T, by SIGSTOP): nothing is checked, planned or healed"
        yield problem(facts, kinds.REGION_DOWN, facts.region.name, text, go_on(facts))
        return
    signs = signs_of(facts)
    for role in roles:
        if says_the_same(facts, role) or (facts.store_full is not None and NO_SPACE in (role.last_error or "")):
            continue
        beat, process = signs.get(role.name, (None, None))
        yield from role_problem(facts, role, beat, needed=role.name in needed or process is not None)


def role_problem(facts: Facts, role: RoleStatus, beat: Beat | None, *, needed: bool) -> Iterator[Problem]:
    """One role, with its last sign of life."""
    since = beat.at if beat else 0
    error = role.last_error or "it doesn't say why"
    log = log_of(facts, role.name.removesuffix(STANDBY))
    match role.state:
        case "down" if needed:
            again = f" after {role.restarts} restart{'s' if role.restarts != 1 else ''}" if role.restarts else ""
            text = f"not running{again}: {error}"
            yield problem(facts, kinds.ROLE_DOWN, role.name, text, log, since)
        case "silent" if needed:
            own = beat is not None and beat.pid == role.pid and role.seen_s is not None
            how_long = f"for {role.seen_s:.0f} s" if own else "since its start"
            text = f"process {role.pid} runs, and gave no sign of life {how_long}"
            line, began = f"cat /proc/{role.pid}/status", since if own else 0
            if role.host is not None:
                text = f"on {role.host or 'another host'} (process {role.pid}) it gave no sign of life {how_long}"
                line = f"ssh {role.host or 'HOST'} fencepost status"
            if stopped_here(facts, role):
                text = f"process {role.pid} is stopped (by SIGSTOP, say) and does nothing"
                line = f"kill -CONT {role.pid}"
            yield problem(facts, kinds.ROLE_SILENT, role.name, text, line, began)
        case "misconfigured":
            provider = kind_of(role.name) == "enactor"
            kind = kinds.PROVIDER_REFUSES if provider else kinds.ROLE_MISCONFIGURED
            yield problem(facts, kind, role.name, error, log)
        case "unavailable":
            yield problem(facts, kinds.ROLE_UNAVAILABLE, role.name, error, log)
    if role.version is not None and role.version != __version__ and role.state != "down":
        text = f"it runs version {role.version}, this is {__version__}"
        yield problem(facts, kinds.ROLE_OTHER_VERSION, role.name, text, "fencepost status -v")


def stopped_here(facts: Facts, role: RoleStatus) -> bool:
    """Whether its process is one of this machine and was stopped."""
    return role.host is None and role.pid in facts.stopped


def go_on(facts: Facts) -> str:
    """The line that has all that is stopped go on."""
    return " ".join(["kill -CONT", *map(str, sorted(facts.stopped))])


def start(facts: Facts) -> str:
    """The line that starts the region."""
    return " ".join(["fencepost", *start_words(Path(facts.region.path))])


def of_store(error: PortError, where: str) -> str:
    """What a store's error says, without the place, which stands before it as what the problem is on."""
    same = error.where == where or Path(error.where).name == Path(where).name
    return error.what if same else said(error)


def said(error: Exception) -> str:
    """What a port's error says, in one line."""
    return str(error).strip() or type(error).__name__
