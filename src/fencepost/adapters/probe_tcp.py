"""TCP: a target is well when it accepts a connection. Nothing is sent; a full accept queue shows as a timeout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fencepost.adapters.probe import Attempt, Check, ProbeSettings, ProbeTarget


class TcpAttempt(Attempt):
    """Passes as soon as it is connected."""

    def connected(self, transport: asyncio.Transport) -> None:
        """The handshake was the answer."""
        del transport
        self.finish(True)


def tcp_check(settings: ProbeSettings) -> Callable[[ProbeTarget], Check]:
    """What to do to each target of a TCP pool."""

    def check(target: ProbeTarget) -> Check:
        return Check(target.address, target.port or settings.port, TcpAttempt)

    return check
