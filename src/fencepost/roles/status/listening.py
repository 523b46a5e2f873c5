"""Where the API listens, and the token that changes ask for: made on the first start, readable by its user alone."""

import os
import secrets
import socket
from pathlib import Path

from fencepost.ports import Misconfigured
from fencepost.roles.status.port_holder import STREAM, port_holder
from fencepost.roles.whole_file import make_whole, why_unwritten
from fencepost.settings import Region
from fencepost.settings.schema import HostPort
from fencepost.settings.secret import is_drawn, read_secret


def read_token(region: Region) -> str:
    """The token that changes ask for; its file is made, mode 0600, if there is none. Raises ``Misconfigured``.

    An empty one where we draw it counts as none. Its directory isn't made: it may be the region's folder, which is only
    away.
    """
    place = region.api.token
    if place.file:
        try:
            ours = is_drawn(place, region.path, os.environ)
            make_whole(Path(place.file), f"{secrets.token_urlsafe(32)}\n".encode(), over_empty=ours)
        except OSError as error:
            rights = "its directory must be one that is there, and that the user fencepost runs as can write"
            why, hint = why_unwritten(error, place.file, rights)
            raise Misconfigured(f"the API's token can't be made: {why}", where=place.file, hint=hint) from None
    try:
        return read_secret(place, os.environ)
    except ValueError as error:
        raise Misconfigured(f"the API's token: {error}", where=region.path, hint="see [api] token") from None


def listen(place: HostPort) -> socket.socket:
    """A listening socket. Raises ``Misconfigured``, with the process that has the port if it can be told."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            place.host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind)
    except OSError as error:
        raise Misconfigured(f"{place} is no place to listen: {error.strerror}", where=str(place)) from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        listening.close()
        who = port_holder(str(address[0]), place.port, STREAM)
        what = f"the port is taken, by {who[1]} ({who[0]})" if who else f"the API can't listen there: {error.strerror}"
        where, hint = f"[api] listen {place}", "write another port there, or end that process if you know it"
        raise Misconfigured(what, where=where, hint=hint) from None
    listening.setblocking(False)
    return listening
