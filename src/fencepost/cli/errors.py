"""What a person reads when something is refused, and the exit code that goes with it.

0 done, 1 a finding or a refusal, 2 usage, configuration or credentials, 3 not reachable, 130 interrupted.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

from fencepost.ports import Misconfigured, PortError, Refused
from fencepost.settings import SettingsError

REFUSED, USAGE, UNREACHABLE, INTERRUPTED = 1, 2, 3, 130


def code_of(error: PortError) -> int:
    """The exit code for a port's failure."""
    if isinstance(error, Misconfigured):
        return USAGE
    return REFUSED if isinstance(error, Refused) else UNREACHABLE


def guarded(app: Callable[[], Any]) -> int:
    """Run a command; its exit code. What it refuses is said in words (or as JSON, if that was asked for)."""
    as_json = "--json" in sys.argv
    try:
        result = app()
    except SettingsError as error:
        say({"kind": "misconfigured", "what": str(error), "where": "", "hint": ""}, str(error), as_json=as_json)
        return USAGE
    except PortError as error:
        kind = type(error).__name__.lower()
        words = f"error: {error}" + (f"\n  try      {error.hint}" if error.hint else "")
        say({"kind": kind, "what": error.what, "where": error.where, "hint": error.hint}, words, as_json=as_json)
        return code_of(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def say(error: dict[str, str], words: str, *, as_json: bool) -> None:
    """An error on stderr, or as the one JSON document on stdout."""
    if as_json:
        print(json.dumps({"error": error}))
    else:
        print(words, file=sys.stderr)
