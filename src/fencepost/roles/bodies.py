"""What roles put into the store for one another, as JSON: read so that what can't be read is told and ends nobody.

Another version of fencepost may have written it, or a person with a tool. Whoever reads it goes on with the rest: a
role that ends at such a row ends again at each start, and takes with it what has nothing to do with that row.
"""

from typing import TypeVar

import msgspec

from fencepost.ports import Misconfigured

T = TypeVar("T")


def read_body(kind: type[T], body: bytes, what: str) -> T:
    """A body as a value of ``kind``; ``what`` names it for people, such as "pool web: its membership row".

    Raises ``Misconfigured``.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        hint = "run the fencepost version that wrote it; until then what stands in DNS stays"
        raise Misconfigured(f"{what} can't be read ({error}); another version's?", hint=hint) from error
