"""The stage for Google Cloud DNS: its adapter on a stand-in of the API, over HTTP or without any network."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from cloud_dns_fake import PROJECT, TOKEN, ZONE, CloudDnsFake, Direct, record, serve
from dns_scene import DOMAIN, OWNER

from fencepost.adapters.dns_cloud_dns import CloudDns
from fencepost.adapters.dns_presentation import quoted
from fencepost.adapters.https import Https
from fencepost.core.fence import Marker
from fencepost.core.names import marker_name
from fencepost.core.zone import Live

T = TypeVar("T")


class CloudStage:
    """The adapter on the stand-in, over HTTP; or without any network where ``direct``."""

    def __init__(self, *, direct: bool = False, **how: Any) -> None:
        self.fake = CloudDnsFake(DOMAIN, **how)
        self.direct = direct
        self.url = ""
        self._ports: list[CloudDns] = []

    def port(self, **changes: Any) -> CloudDns:
        """As the contract says."""
        send = Direct(self.fake) if self.direct else Https()
        url = self.url or "https://dns.googleapis.com"
        words: dict[str, Any] = {"place": (PROJECT, ZONE), "token": lambda: TOKEN, "send": send, "url": url} | changes
        made = CloudDns(DOMAIN, OWNER, **words)
        self._ports.append(made)
        return made

    async def hand(self, *lives: Live) -> None:
        """As the contract says: a change that asks for nothing and leaves the serial alone."""
        gone, come = [], []
        for live in lives:
            own, at = f"{live.name}.", f"{marker_name(live.name)}."
            gone += [(own, "A"), (own, "AAAA"), (own, "CNAME"), (at, "TXT")]
            if live.marker is not None:
                raw = (live.marker.encode(),) if isinstance(live.marker, Marker) else live.marker.raw
                come.append(record(at, "TXT", 300, *map(quoted, raw)))
            come += [
                record(own, kind, live.ttl, *found) for kind, found in (("A", live.a), ("AAAA", live.aaaa)) if found
            ]
            if live.other:
                come.append(record(own, "CNAME", 60, "elsewhere.example."))
        self.fake.write(gone, come)

    def run(self, act: Callable[[], Awaitable[T]]) -> T:
        """As the contract says."""

        async def whole() -> T:
            runner = None
            if not self.direct:
                runner, self.url = await serve(self.fake)
            try:
                return await act()
            finally:
                for port in self._ports:
                    await port.close()
                self._ports.clear()
                if runner is not None:
                    await runner.cleanup()

        return asyncio.run(whole())
