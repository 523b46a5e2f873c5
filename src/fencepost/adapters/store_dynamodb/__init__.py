"""A store in one DynamoDB table: for a region on several hosts at AWS.

:mod:`.store` is the port; :mod:`.root` is the one item that everything hangs on, and its compare-and-set; :mod:`.blobs`
keeps what is too big for it; :mod:`.plans`, :mod:`.chain` and :mod:`.spent` are plans and rows; :mod:`.inputs` and
:mod:`.overrides` what plans are made from; :mod:`.telemetry` and :mod:`.history` what decides nothing; :mod:`.watch`
wakes waiters; :mod:`.table` makes the table, ties the store's identity to it and judges it; :mod:`.client` and
:mod:`.faults` are the way to DynamoDB and its errors; :mod:`.items` how values stand in items.
"""

from fencepost.adapters.store_dynamodb.store import DynamoDbStore
from fencepost.adapters.store_dynamodb.table import TableFinding, look_at_table

__all__ = ["DynamoDbStore", "TableFinding", "look_at_table"]
