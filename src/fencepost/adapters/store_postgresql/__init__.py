"""A store in a PostgreSQL database: for a region whose roles run on several hosts.

:mod:`.store` is the port; :mod:`.database` connects, retries and bounds each call in time; :mod:`.founding` notices
that the server is another one than the store was made on; :mod:`.plans`, :mod:`.inputs`, :mod:`.overrides` and
:mod:`.telemetry` are the tables' queries; :mod:`.watch` wakes waiters; :mod:`.address`, :mod:`.bounded`,
:mod:`.connection`, :mod:`.session`, :mod:`.schema` and :mod:`.faults` are what their names say.
"""

from fencepost.adapters.store_postgresql.store import PostgresqlStore

__all__ = ["PostgresqlStore"]
