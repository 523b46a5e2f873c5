"""``fencepost run ROLE``: one role in the foreground, for systemd."""

from pathlib import Path

from fencepost.cli.flags import Config
from fencepost.cli.regions import region_of
from fencepost.ports import Misconfigured


def run(
    role: str,
    /,
    *,
    zone: str | None = None,
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
        planner, enactor, checker, janitor, dns, api or agent.
    zone
        The failure zone, for an enactor, checker or agent.
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
    if role == "agent":
        from fencepost.cli.agent import AgentFlags, run_agent

        return run_agent(AgentFlags(host, zone, listen, join, room, address, state, config))
    if (host, listen, join, room, address, state) != (None, None, None, 1, (), None):
        hint = f"fencepost run {role}  takes --zone at most"
        raise Misconfigured("--host, --listen, --join, --room, --address and --state are an agent's", hint=hint)
    from fencepost import assembly
    from fencepost.cli.up_versions import warn_of_other_versions
    from fencepost.roles.process import run as run_process

    region = region_of(config, forgiving=True)
    if role not in assembly.ROLES:
        raise Misconfigured(f"no role is called {role!r}", hint=f"one of: {', '.join(assembly.ROLES)}")
    if (role in assembly.A_ZONE) != (zone is not None):
        hint = f"--zone {region.zones[0]}" if role in assembly.A_ZONE else "leave out --zone"
        raise Misconfigured(f"{role} is one a zone" if zone is None else f"{role} has no zone", hint=hint)
    if zone is not None and zone not in region.zones:
        raise Misconfigured(f"no zone {zone!r} in this region", hint=f"one of: {', '.join(region.zones)}")
    if region.dns.provider == "embedded":
        assembly.make_tsig_key(region)
    warn_of_other_versions(region)
    main = assembly.ROLES[role](region, zone) if zone is not None else assembly.ROLES[role](region)
    name = f"{role}/{zone}" if zone else role
    return run_process(name, main, assembly.state_folder(region), log_to_stderr=True)
