"""What a manager's hosts told, looked up in its columns and its table: placing goes by it, and it isn't kept twice."""

from fencepost.core.capacity.lease_manager import LeaseManager
from fencepost.core.capacity.messages import Answer
from fencepost.core.capacity.placement import Told


class ToldByHosts(dict[str, Told]):
    """What each host told under its present token; never filled, and without a host that told nothing under it.

    A host that can't write its memory answers no order, and what it holds is in doubt from each order until it is next
    asked. What it says of that itself isn't: it can't write, and what it refused it never starts.
    """

    def __init__(self, manager: LeaseManager) -> None:
        super().__init__()
        self.manager = manager

    def get(self, host: str, default: Told | None = None) -> Told | None:  # type: ignore[override]  # always Told
        """What it told, if it told anything under its present token."""
        table, leases = self.manager.book.table, self.manager.leases
        hosts = leases.hosts
        number = table.numbers.get(host)
        if number is None or number >= hosts.size:
            return default
        unable = table.unable.get(number)
        if unable is not None:
            token = unable.token
            present = (leases.owner.epoch, int(hosts.number[number]), int(hosts.nonce[number]))
            if (token.epoch, token.number, token.nonce) == present:
                return told(unable)
        if not hosts.fresh[number]:
            return default
        version = int(hosts.host_version[number])
        of, down = table.down.get(number, (0, ()))
        down = down if of == version else ()
        return Told(version, frozenset(down), dict(zip(down, table.causes.get(number, ()), strict=False)))

    def __contains__(self, host: object) -> bool:
        return isinstance(host, str) and self.get(host) is not None


def told(answer: Answer) -> Told:
    """What one answer tells."""
    causes = dict(zip(answer.down, answer.causes, strict=False))
    refused = frozenset(answer.refused)
    return Told(answer.version, frozenset(answer.down), causes, answer.unable, answer.boot, refused)
