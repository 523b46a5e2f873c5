"""An enactor's transactions on their way: all at once where the port can, else one after the other."""

from collections.abc import Callable, Sequence

from fencepost.core.zone import Batch
from fencepost.ports import DnsPort, Pipelining, PortError


async def sent(dns: DnsPort, parts: Sequence[Batch], go_on: Callable[[], bool]) -> Sequence[bool | PortError]:
    """What became of each transaction: as of ``DnsPort.commit``, told not raised. See :class:`~.ports.Pipelining`."""
    if len(parts) > 1 and isinstance(dns, Pipelining):
        return await dns.commit_each(parts, go_on)
    found: list[bool | PortError] = []
    for part in parts:
        if found and not go_on():
            break
        try:
            found.append(await dns.commit(part))
        except PortError as error:
            found.append(error)
    return found
