"""Judges what can't work where it is put: a store that can be no file, a name that the embedded server has taken.

A role that meets such a store waits for a person, for good; a start would only find it out role by role.
"""

import ipaddress
import os
import stat

from fencepost.settings.lines import Path
from fencepost.settings.mistakes import shown
from fencepost.settings.relations import Read

NAME_BYTES = 255
"""A file's name may have so many (NAME_MAX of Linux)."""
PATH_BYTES = 511
"""So many a path that SQLite opens (SQLITE_MAX_PATHNAME, with the NUL 512)."""
BESIDE = len(".new-journal")
"""The longest end of what lies beside the store's file while it is made."""


def judge_places(read: Read) -> None:
    """Note a store's path that can't be one, and endpoints that would stand where the server's own address does."""
    path = read.region.store.path
    if path and ("store", "path") not in read.bad:
        at: Path = ("store", "path") if read.lines.has(("store", "path")) else ("region", "name")
        wrong = store_fault(path)
        if wrong:
            read.notes.wrong(at, f"path {shown(path)} {wrong}")
    _own_name(read)


def store_fault(path: str) -> str:
    """Why no store can be at a path; "" if one can, as far as the path tells."""
    name, whole = len(os.fsencode(os.path.basename(path))), len(os.fsencode(os.path.realpath(path)))
    if name + BESIDE > NAME_BYTES:
        return f"has a file name of {name} bytes; at most {NAME_BYTES - BESIDE} leave room for what lies beside it"
    if whole + BESIDE > PATH_BYTES:
        return f"has {whole} bytes; SQLite opens paths of at most {PATH_BYTES - BESIDE}"
    try:
        found = os.stat(path).st_mode
    except NotADirectoryError:
        return "leads through something that is no directory; name a file in a directory"
    except OSError:
        return ""  # it may be made, or be there later
    if stat.S_ISDIR(found):
        return "is a directory; name a file in it"
    if not stat.S_ISREG(found):
        return "is a device, pipe or socket, which keeps nothing; name a file"
    return ""


def _own_name(read: Read) -> None:
    """Refuse an endpoint where the embedded server puts its own address: it would never adopt that as its own."""
    dns = read.region.dns
    if dns.provider != "embedded" or dns.listen is None or ipaddress.ip_address(dns.listen.host).is_unspecified:
        return
    own = {f"ns.{domain}" for domain in dns.domains}
    for endpoint in read.region.endpoints:
        if endpoint.name in own:
            text = f"endpoint {endpoint.name} is the embedded server's own name, with its own address; take another"
            read.notes.wrong(endpoint.line, text)
