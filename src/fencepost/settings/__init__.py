"""region.toml: read, judged, compared.

`load` gives a frozen `Region` or raises `SettingsError` with every mistake at once; `check` gives mistakes, cautions
and what the file means. Both run the same code, so what `check` passes is what starts. Nothing here opens a connection.

Three steps: TOML to values, one key at a time (`tables`, `values`, `pools`); numbers against each other and against the
pools (`relations`, `cautions`); secrets by looking at the files they are in (`secret`). Mistakes carry the path of a
key until the end, when `lines` tells where in the file that is.
"""

from fencepost.settings.loading import Report, check, judge, load
from fencepost.settings.mistakes import Caution, Mistake, SettingsError, closing
from fencepost.settings.schema import Region, decode, encode

__all__ = [
    "Caution",
    "Mistake",
    "Region",
    "Report",
    "SettingsError",
    "check",
    "closing",
    "decode",
    "encode",
    "judge",
    "load",
]
