"""Where the API listens, and the token that changes ask for: made on the first start, readable by its user alone."""

import os
import secrets
import socket

from fencepost.ports import Misconfigured
from fencepost.roles.status.port_holder import STREAM, port_holder
from fencepost.settings import Region
from fencepost.settings.schema import HostPort
from fencepost.settings.secret import read_secret


def read_token(region: Region) -> str:
    """The token that changes ask for; its file is made, mode 0600, if there is none. Raises ``Misconfigured``.

    Its directory isn't made: it may be the region's folder, which is only away.
    """
    place = region.api.token
    if place.file:
        try:
            made = os.open(place.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(made, "w") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
        except FileExistsError:
            pass
        except OSError as error:
            what = f"the API's token can't be made: {error.strerror}"
            hint = "its directory must be one that is there, and that the user fencepost runs as can write"
            raise Misconfigured(what, where=place.file, hint=hint) from None
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
