"""How a domain in Route 53 is reached."""

from pathlib import Path

from msgspec import Struct

from fencepost.core.instant import SECOND, Duration


class Route53Settings(Struct, frozen=True, gc=False):
    """One domain. ``owner`` is whose markers are ours; ``zone_id`` "" finds the hosted zone by the domain's name.

    ``requests`` is how many a second all roles of the region on this host make together. ``folder`` holds what they
    share (None: nothing). ``weighted`` are the endpoints to be kept in weighted sets. ``look_each`` is how often the
    zone is listed anew at the most, ``timeout`` the patience for one answer. ``endpoint`` is another URL than AWS's;
    else AWS_ENDPOINT_URL_ROUTE_53 may give one. ``several`` says that ``zone_id`` may be that of another domain
    of the region.
    """

    domain: str
    owner: str
    zone_id: str = ""
    requests: float = 2.0
    folder: Path | None = None
    weighted: frozenset[str] = frozenset()
    look_each: Duration = 5 * SECOND
    timeout: Duration = 10 * SECOND
    endpoint: str = ""
    several: bool = False
