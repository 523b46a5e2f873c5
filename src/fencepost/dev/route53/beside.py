"""The stand-in as a process beside a sample region's roles, whose region.toml names it as the provider's endpoint."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fencepost.dev.route53.names import BadNameError
from fencepost.dev.route53.server import Route53Server
from fencepost.dev.route53.settings import Route53Settings
from fencepost.ports import Misconfigured
from fencepost.settings import Region

FILE = "route53.json"


def main_of(region: Region, folder: Path) -> Callable[[], Coroutine[Any, Any, None]]:
    """The main of a process that serves the region's domains where [dns] says; its file is in `folder`.

    It isn't throttled: the region's own ``requests`` keep it to a rate.
    """
    endpoint = urlsplit(region.dns.option("endpoint"))
    dns = region.dns.server
    settings = Route53Settings(
        listen=f"{endpoint.hostname}:{endpoint.port}",
        dns=f"{dns.host}:{dns.port}" if dns is not None else None,
        zones=region.dns.domains,
        data=str(folder / FILE),
        requests_per_s=None,
    )

    async def main() -> None:
        await serve(settings)

    return main


async def serve(settings: Route53Settings, ready: Callable[[Route53Server], None] | None = None) -> None:
    """Serve until cancelled; `ready` is told once it listens. Raises `Misconfigured` if it can't."""
    server = Route53Server(settings)
    try:
        await server.start()
    except OSError as error:
        if error.filename is not None:
            hint = "name a file that can be written, in a folder that is there"
            raise Misconfigured(error.strerror or str(error), where=str(error.filename), hint=hint) from error
        raise Misconfigured(
            f"can't listen: {error.strerror or error}",
            where=" and ".join(each for each in (settings.listen, settings.dns) if each),
            hint="is another one running there? take other ports",
        ) from error
    except BadNameError as error:
        what = str(error).removeprefix("FATAL problem: ")
        raise Misconfigured(what, hint="a hosted zone has a domain's name, like example.test") from error
    except ValueError as error:
        where = settings.data or ""
        raise Misconfigured(str(error), where=where, hint="name another file, or move this one away") from error
    if ready is not None:
        ready(server)
    try:
        await server.ended()
    finally:
        await server.stop()
