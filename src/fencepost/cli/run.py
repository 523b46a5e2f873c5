"""``fencepost run ROLE``: one role in the foreground, for systemd."""

from pathlib import Path

from fencepost.cli.flags import Config
from fencepost.cli.folder import make_for_one_role
from fencepost.cli.regions import region_of
from fencepost.ports import Misconfigured
from fencepost.settings import Region

OTHER_ROLES = ("host-manager", "agent")
"""Those that are started with more than a zone."""


def run(
    role: str,
    /,
    *,
    zone: str | None = None,
    shard: str | None = None,
    config: Config = None,
    host: str | None = None,
    listen: str | None = None,
    join: str | None = None,
    room: int = 1,
    address: tuple[str, ...] = (),
    state: Path | None = None,
) -> int:
    """Run one role in the foreground until SIGTERM, its log on stderr.

    Parameters
    ----------
    role
        planner, enactor, checker, janitor, dns, api, host-manager, network-manager or agent.
    zone
        The failure zone, for an enactor, checker or agent.
    shard
        The host manager's shard, and of how many: 1/4.
    host
        The agent's host, by name; this machine's unless given.
    listen
        Where the agent answers managers, UDP and TCP; 127.0.0.1:7700 unless given.
    join
        The API at which the agent registers; that of the region's file unless given.
    room
        How many instances the agent's host takes.
    address
        An address that the agent's host can give an instance; may be given several times.
    state
        The agent's folder: what it must not forget, and its instances.
    """
    if shard is not None and role != "host-manager":
        raise Misconfigured(f"{role} has no shard", hint="leave out --shard; a host-manager has one")
    if role == "agent":
        from fencepost.cli.agent import AgentFlags, run_agent

        return run_agent(AgentFlags(host, zone, listen, join, room, address, state, config))
    if (host, listen, join, room, address, state) != (None, None, None, 1, (), None):
        hint = f"fencepost run {role}  takes --zone at most"
        raise Misconfigured("--host, --listen, --join, --room, --address and --state are an agent's", hint=hint)
    if role == "host-manager":
        if zone is not None:
            raise Misconfigured("host-manager has no zone", hint="leave out --zone")
        return run_host_manager(shard, config)
    return run_role(role, zone, config)


def run_host_manager(shard: str | None, config: str | None) -> int:
    """A shard's host manager; the exit code."""
    from fencepost.assembly.managers import host_manager_main
    from fencepost.assembly.places import state_folder
    from fencepost.cli.up_versions import warn_of_other_versions
    from fencepost.roles.process import run as run_process

    region = region_of(config, forgiving=True)
    number = shard_of(shard, region)
    make_for_one_role(region, state_folder(region))
    warn_of_other_versions(region)
    main = host_manager_main(region, number)
    return run_process(f"host-manager/{number}", main, state_folder(region), log_to_stderr=True)


def run_role(role: str, zone: str | None, config: str | None) -> int:
    """A region's role, of a failure zone or without; the exit code."""
    from fencepost import assembly
    from fencepost.cli.up_versions import warn_of_other_versions
    from fencepost.roles.process import run as run_process

    region = region_of(config, forgiving=True)
    if role not in assembly.ROLES:
        raise Misconfigured(f"no role is called {role!r}", hint=f"one of: {', '.join((*assembly.ROLES, *OTHER_ROLES))}")
    if (role in assembly.A_ZONE) != (zone is not None):
        hint = f"--zone {region.zones[0]}" if role in assembly.A_ZONE else "leave out --zone"
        raise Misconfigured(f"{role} is one a zone" if zone is None else f"{role} has no zone", hint=hint)
    if zone is not None and zone not in region.zones:
        raise Misconfigured(f"no zone {zone!r} in this region", hint=f"one of: {', '.join(region.zones)}")
    folder = assembly.state_folder(region)
    make_for_one_role(region, folder)
    if region.dns.provider == "embedded" and folder.is_dir():
        assembly.make_tsig_key(region)
    warn_of_other_versions(region)
    main = assembly.ROLES[role](region, zone) if zone is not None else assembly.ROLES[role](region)
    name = f"{role}/{zone}" if zone else role
    return run_process(name, main, folder, log_to_stderr=True)


def shard_of(text: str | None, region: Region) -> int:
    """Which shard is meant: "1/4" the first of four. Raises ``Misconfigured`` if the region has others."""
    of = region.fleet.shards if region.fleet is not None else 1
    if text is None and of == 1:
        return 1
    number, _, count = (text or "").partition("/")
    if number.isdigit() and 1 <= int(number) <= of and count in ("", str(of)):
        return int(number)
    what = f"--shard {text} isn't one of this region's" if text else "a host-manager has a shard"
    raise Misconfigured(what, where=region.path, hint=f"--shard 1/{of}: [fleet] shards = {of}")
