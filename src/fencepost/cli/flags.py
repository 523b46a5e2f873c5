"""Flags that several commands share, each with one name and one meaning, and how their values are read."""

import os
import pwd
import signal
import sys
import time
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from fencepost.cli.terminal import Declined, interactive, note
from fencepost.core.instant import DAY, Duration, Instant
from fencepost.ports import Misconfigured
from fencepost.settings.units import duration_ns

Config: TypeAlias = Annotated[str | None, Parameter(name="--config", help="Which region.toml.")]
Json: TypeAlias = Annotated[bool, Parameter(name="--json", help="One JSON document on stdout, on refusal too.")]
Timeout: TypeAlias = Annotated[
    str, Parameter(name="--timeout", help="How long to wait for an answer, or for DNS to show it.")
]
Yes: TypeAlias = Annotated[bool, Parameter(name=["--yes", "-y"], help="Don't ask.")]
Confirm: TypeAlias = Annotated[
    str | None, Parameter(name="--confirm", help="The name, said again, where a slip would hurt.")
]
Reason: TypeAlias = Annotated[
    str | None, Parameter(name="--reason", help="Why; asked for on a terminal, required without.")
]
Note: TypeAlias = Annotated[str | None, Parameter(name="--reason", help="Why, for the history; ending needs none.")]
For: TypeAlias = Annotated[
    str | None, Parameter(name="--for", help='How long: 30m, 2d, or "ever" (until `resume`). Default: 1h.')
]
RunFor: TypeAlias = Annotated[
    str | None, Parameter(name="--for", help="Stop by itself after so long, such as 30s. Default: on until Ctrl-C.")
]
Ever: TypeAlias = Annotated[
    str | None, Parameter(name="--for", help='How long: 30m, 2d, or "ever". Default: ever, until `resume`.')
]

EVER = "ever"
LONGEST: Duration = 50 * 365 * DAY
"""Longer is a slip; and what ends must end while the store's 64 bits of nanoseconds since 1970 can say it."""


def duration(text: str, flag: str) -> Duration:
    """A flag's duration in nanoseconds. Raises ``Misconfigured`` for anything else."""
    try:
        found = duration_ns(text)
    except ValueError as error:
        raise Misconfigured(f"{blamed(flag, text)} {text!r} {error}") from None
    if found > LONGEST:
        hint = "at most 50 years, such as 30d or 365d" + ('; "ever" has no end' if flag == "--for" else "")
        raise Misconfigured(f"{blamed(flag, text)} {text!r} is too long", hint=hint)
    return found


def blamed(flag: str, text: str) -> str:
    """Who gave a flag its value: the flag, or the variable that stands for it in the environment."""
    variable = f"FENCEPOST_{flag.lstrip('-').upper().replace('-', '_')}"
    given = any(word == flag or word.startswith(f"{flag}=") for word in sys.argv)
    return f"${variable}" if os.environ.get(variable) == text and not given else flag


def until(for_: str | None, default: str) -> Instant:
    """When a change ends (nanoseconds since 1970), 0 for never."""
    text = for_ or default
    if text == EVER:
        return 0
    lasts = duration(text, "--for")
    if lasts <= 0:
        raise Misconfigured("--for 0s would end before it begins", hint='write how long, such as --for 1h, or "ever"')
    return time.time_ns() + lasts


def author() -> str:
    """Who does it, as the system knows them."""
    from fencepost.core.orders import seemly

    found = os.environ.get("SUDO_USER") or os.environ.get("USER")
    if found and (text := seemly(found)):
        return text
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def reason(given: str | None, command: str) -> str:
    """Why, in one line. Asked for on a terminal; raises ``Misconfigured`` where nobody can be asked, or if too long."""
    from fencepost.core.orders import text_faults

    said = " ".join((given or "").split())
    if not said and asking():
        said = " ".join(ask("reason: ").split())
    if faults := text_faults("--reason", said):
        raise Misconfigured(faults[0], hint="plain text, at most 500 characters: it stands in a line of the history")
    if said:
        return said
    raise Misconfigured("a change needs a reason", hint=f'fencepost {command} … --reason "why"')


def asking() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and interactive(sys.stderr)


def ask(question: str) -> str:
    """An answer from the terminal, "" at its end (Ctrl-D). Ctrl-C ends the command.

    An event loop takes Ctrl-C for a wish to cancel its task, which waits here and hears nothing; so meanwhile it is
    Python's own (asyncio.Runner, "Handling Keyboard Interruption").
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        print(question, end="", file=sys.stderr, flush=True)
        said = sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, before)
    if not said.endswith("\n"):
        note("")
    return said.strip()


def agree(question: str, *, yes: bool, flag: str = "--yes") -> None:
    """Go on only with a yes. Raises ``Misconfigured`` where nobody can be asked; ``Declined`` at a no."""
    if yes:
        return
    if not asking():
        raise Misconfigured(f"{question} Nobody is there to say yes", hint=f"add {flag}")
    if ask(f"{question} [y/N] ").lower() not in ("y", "yes"):
        raise Declined


def normal(name: str) -> str:
    """A name as it compares: DNS knows no case, and a final dot says nothing (RFC 4343)."""
    return name.strip().lower().removesuffix(".")


def confirm(question: str, name: str, given: str | None) -> None:
    """Go on only if the name was said again. Raises as :func:`agree` does."""
    if given is not None:
        if normal(given) != normal(name):
            raise Misconfigured(f"{blamed('--confirm', given)} {given!r} isn't {name!r}", hint=f"--confirm {name}")
        return
    if not asking():
        raise Misconfigured(question, hint=f"add --confirm {name}")
    note(question)
    if normal(ask(f"Type {name} to go on: ")) != normal(name):
        raise Declined
