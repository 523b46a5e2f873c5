"""Other people's formats, read into a region.toml to begin with.

A source (a master file, octoDNS's YAML, what ``aws route53 list-resource-record-sets`` prints, a transferred zone) is
gathered into a :class:`~fencepost.importing.records.Source`; :mod:`~fencepost.importing.choosing` picks the address
sets that are endpoints and says of every other why not; :mod:`~fencepost.importing.region_file` writes the file.

Nothing here opens a connection or changes anything. What can't be read is refused with its line; what can be read and
isn't ours to take over (weighted sets, aliases, delegations) is left out and named, never half taken.
"""

from fencepost.importing.choosing import Chosen, choose
from fencepost.importing.records import Book, LeftOut, RecordSet, Source
from fencepost.importing.region_file import Served, write

__all__ = ["Book", "Chosen", "LeftOut", "RecordSet", "Served", "Source", "choose", "write"]
