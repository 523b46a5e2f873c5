"""``fencepost run ROLE``: one role in the foreground, for systemd."""

from fencepost.cli.flags import Config
from fencepost.cli.regions import region_of
from fencepost.ports import Misconfigured


def run(role: str, /, *, zone: str | None = None, config: Config = None) -> int:
    """Run one role in the foreground until SIGTERM, its log on stderr.

    Parameters
    ----------
    role
        planner, enactor, checker, janitor, dns or api.
    zone
        The failure zone, for an enactor or checker.
    """
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
