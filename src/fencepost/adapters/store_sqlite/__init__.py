"""A store in one SQLite file, for one host: nothing to install, and any number of processes share it.

:mod:`.store` is the port; :mod:`.database` opens, retries and notices a lost file; :mod:`.plans`, :mod:`.inputs` and
:mod:`.telemetry` are the tables' queries; :mod:`.writer` names who holds the write lock; :mod:`.watch` wakes waiters;
:mod:`.checkpoints` keeps the write-ahead log short; :mod:`.schema` and :mod:`.faults` are what their names say.
"""

from fencepost.adapters.store_sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
