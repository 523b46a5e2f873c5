"""The status of a region: what it looks like now, gathered from as far down as one has to look.

``facts`` -> ``compose`` -> ``document``: reading is in ``gather``, everything else is pure.
"""

from fencepost.roles.status.document import SCHEMA, Status, decode, encode, status_schema

__all__ = ["SCHEMA", "Status", "decode", "encode", "status_schema"]
