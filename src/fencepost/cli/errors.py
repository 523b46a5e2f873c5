"""What a person reads when something is refused, and the exit code that goes with it.

0 done, 1 a finding or a refusal, 2 usage, configuration or credentials, 3 not reachable, 70 a defect of ours, 74 the
answer can't be written (70 and 74 as sysexits(3) has them), 130 interrupted. No traceback and no box: one line that
says what, and lines that say what to do.
"""

import errno
import json
import os
import re
import sys
from itertools import pairwise
from typing import Any

from fencepost.cli import layout, streams, terminal
from fencepost.cli.streams import Unwritable
from fencepost.cli.terminal import Declined
from fencepost.ports import Misconfigured, PortError, Refused, Unavailable
from fencepost.settings import SettingsError

REFUSED, USAGE, UNREACHABLE, DEFECT, UNWRITTEN, INTERRUPTED = 1, 2, 3, 70, 74, 130
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


_FLAG = re.compile(r"  (?:-|[A-Z][A-Z_-]*\b)")
"""How the help of a flag, or of an argument, begins."""
_UNDERLINED = re.compile(r"(?<= )([A-Z]{2,})_(?=:| |$)")
"""An argument that is named ID_ for Python's sake."""


def code_of(error: PortError) -> int:
    """The exit code for a port's failure."""
    if isinstance(error, Misconfigured):
        return USAGE
    return REFUSED if isinstance(error, Refused) else UNREACHABLE


def guarded(words: list[str]) -> int:
    """Run a command; its exit code, also where its answer, or its refusal, can't be written or it is interrupted."""
    try:
        with streams.kept():
            return judged(words)
    except Unwritable as error:
        if error.closed:
            return 0
        said = "it is closed" if error.errno == errno.EBADF else (error.strerror or "no reason").lower()
        what = f"{error_word()} the answer can't be written to stdout: {said}; what the command did stands"
        terminal.note(what)
        return UNWRITTEN
    except KeyboardInterrupt:
        if terminal.interactive(sys.stderr):
            terminal.note("")  # the terminal has echoed ^C, and what comes next begins a line
        return INTERRUPTED


def judged(words: list[str]) -> int:
    """Run a command; its exit code. What it refuses is said in words (or as JSON, if that was asked for)."""
    as_json = "--json" in words or os.environ.get("FENCEPOST_JSON", "").lower() in ("1", "true", "yes")
    as_json = as_json or "--format=json" in words or ("--format", "json") in pairwise(words)
    try:
        return run(words)
    except SettingsError as error:
        document = {"kind": "misconfigured", "what": error.what, "where": error.where, "hint": error.hint}
        return tell(document, str(error), USAGE, as_json=as_json)
    except PortError as error:
        document = {
            "kind": kind_of(error),
            "what": error.what,
            "where": error.doing,
            "hint": error.advice,
        }
        return tell(document, words_of(error), code_of(error), as_json=as_json)
    except ValueError as error:
        return tell(usage(str(error), ""), f"error: {error}", USAGE, as_json=as_json)
    except Declined:
        return tell(
            {"kind": "refused", "what": "declined", "where": "", "hint": ""},
            "Nothing was done.",
            REFUSED,
            as_json=as_json,
        )
    except Unwritable:
        raise
    except Exception as error:
        if os.environ.get("FENCEPOST_TRACEBACK"):
            raise
        if isinstance(error, OSError) and (error.filename is not None or error.errno in NO_ROOM):
            refused = of_file(error)
            document = {"kind": "misconfigured", "what": refused.what, "where": refused.where, "hint": refused.hint}
            return tell(document, words_of(refused), USAGE, as_json=as_json)
        what = f"a defect in fencepost: {type(error).__name__}: {error}"
        hint = "FENCEPOST_TRACEBACK=1 shows where; please report it"
        document = {"kind": "defect", "what": what, "where": "", "hint": hint}
        return tell(document, words_of(Misconfigured(what, hint=hint)), DEFECT, as_json=as_json)


def kind_of(error: PortError) -> str:
    """What kind of error it is: its own word for it, else which of the three, whatever its class is called."""
    kinds = (Misconfigured, Refused, Unavailable)
    return str(getattr(error, "kind", "")) or next(
        (kind.__name__.lower() for kind in kinds if isinstance(error, kind)), "error"
    )


def of_file(error: OSError) -> Misconfigured:
    """What the system says of a file of ours, in words: what, which file, what to do."""
    from fencepost.roles.whole_file import why_unwritten

    path = os.fsdecode(error.filename) if error.filename is not None else ""
    said, hint = why_unwritten(error, path, f"ls -ld {path}")
    if error.errno in (errno.EACCES, errno.EPERM):
        hint = "be the user that the region's files belong to (ls -ln shows whose they are), or take another folder"
    elif error.errno == errno.EROFS:
        hint = "that file system is read-only: take another folder"
    return Misconfigured(said, where=path, hint=hint)


def run(words: list[str]) -> int:
    """Call the command the words name. Raises what it raises; ``Misconfigured`` for words that mean nothing."""
    if words[:1] == ["help"] and len(words) > 1:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        from fencepost.cli.help import overall

        terminal.say(overall())
        return 0
    if words[0] in PAIRED and all(word in ("-h", "--help") for word in words[1:]):
        from fencepost.cli.help import of_pair

        terminal.say(of_pair(words[0]))
        return 0
    from fencepost.cli.app import make

    words = terminal.take_global(words)
    if len(words) > 1 and words[0] in ALIASES:
        words = [ALIASES[words[0]], *words[1:]]
    known(words)
    if any(word in ("--help", "-h") for word in words[: words.index("--") if "--" in words else None]):
        opening(words)
        return help_of(words)
    from cyclopts import CycloptsError

    try:
        result: Any = make()(words)
    except CycloptsError as error:
        raise from_cyclopts(error, words) from None
    return result if isinstance(result, int) else 0


def error_word() -> str:
    """What an error's first line begins with."""
    return terminal.styled("error:", "red", sys.stderr)


def words_of(error: PortError) -> str:
    """An error in words: what, where, and what to try; of a provider's refusal also what it means, each on its line."""
    if error.means or error.unchanged:
        lines = [f"{error_word()} {error.what}", f"  doing    {error.doing}"]
        lines += [f"  means    {error.means}"] if error.means else []
    else:
        lines = [f"{error_word()} {error}"]
    if error.hint:
        lines.append(f"  try      {error.hint}")
    return "\n".join(lines)


ALIASES = {"apply": "enact"}
"""Another name for a command; what it is called everywhere is the second."""

PAIRED = ("dev", "fleet", "incident", "store")
"""First words that need a second one."""

ELSEWHERE = {
    "stop": 'Ctrl-C where  fencepost up  runs, or  kill  of the process that ps calls "fp supervisor"',
    "start": "fencepost up",
    "restart": "fencepost reload    takes up region.toml; for more, end  fencepost up  and start it again",
    "apply": "fencepost reload    takes up region.toml;  fencepost apply FILE  does a saved plan",
    "version": "fencepost --version",
}
"""Words that people try, and what does it."""


def known(words: list[str]) -> None:
    """Refuse a first word that is no command, naming the nearest."""
    from fencepost.cli import COMMANDS

    if words and words[0].startswith("-"):
        flags = ("--version", "--help", "-h")
        if words[0] not in flags and (close := nearest(words[0], list(flags))) != "fencepost --help":
            raise Misconfigured(f"there is no {words[0]}", hint=close)
        if words[0] not in flags:
            raise Misconfigured(f"{words[0]} comes after a command", hint="fencepost --help")
        return
    firsts = sorted({name.partition(" ")[0] for name in COMMANDS})
    if words and words[0] in ELSEWHERE:
        raise Misconfigured(f'there is no command "{words[0]}"', hint=ELSEWHERE[words[0]])
    if not words or words[0] not in firsts:
        raise Misconfigured(f'there is no command "{words[0] if words else ""}"', hint=nearest(words[0], firsts))
    first = words[0]
    if first in PAIRED and len(words) > 1 and not words[1].startswith("-") and " ".join(words[:2]) not in COMMANDS:
        seconds = [name.partition(" ")[2] for name in COMMANDS if name.startswith(f"{first} ")]
        raise Misconfigured(f'there is no command "{first} {words[1]}"', hint=nearest(words[1], seconds, f"{first} "))


def nearest(word: str, names: list[str], before: str = "") -> str:
    """A line to paste: the nearest command, or the help."""
    from difflib import get_close_matches

    close = get_close_matches(word.lower(), names, n=1, cutoff=0.5)
    return f"fencepost {before}{close[0]}" if close else "fencepost --help"


def opening(words: list[str]) -> None:
    """A command's examples, before its own help."""
    from fencepost.cli import COMMANDS
    from fencepost.cli.help import opening as examples

    for name in (" ".join(words[:2]), words[0]):
        if name in COMMANDS:
            terminal.say(examples(name))
            return


def help_of(words: list[str]) -> int:
    """Say a command's own help, wrapped as all that we say is: each flag's text under its flag."""
    import io

    from cyclopts import CycloptsError
    from rich.console import Console

    from fencepost.cli.app import make

    said = io.StringIO()
    try:
        make()(words, console=Console(file=said, width=layout.ENDLESS, highlight=False, no_color=True))
    except CycloptsError as error:
        raise from_cyclopts(error, words) from None
    lines: list[str] = []
    for line in map(str.rstrip, said.getvalue().splitlines()):
        if lines and lines[-1].startswith("  ") and line.startswith("  ") and not _FLAG.match(line):
            lines[-1] += f" {line.strip()}"  # as its docstring was broken
        else:
            lines.append(line)
    terminal.say("\n".join(with_names(lines)))
    return 0


def with_names(lines: list[str]) -> list[str]:
    """A help whose usage names the arguments that may be left out, where cyclopts says ARGS of them all."""
    listed = lines[lines.index("Arguments:") + 1 :] if "Arguments:" in lines else []
    end = listed.index("") if "" in listed else len(listed)
    optional = [each.strip().partition(":")[0] for each in listed[:end] if "[required]" not in each]
    named = " ".join(f"[{each}]" for each in optional)
    many = f"{named.removesuffix(']')}...]"
    return [
        line.replace("[ARGS...]", many).replace("[ARGS]", named) if optional and line.startswith("Usage: ") else line
        for line in (_UNDERLINED.sub(r"\1", line) for line in lines)
    ]


def from_cyclopts(error: Any, words: list[str]) -> Misconfigured:
    """Its error as ours: one sentence, and where to read on."""
    error.verbose = False
    text = " ".join(str(error).split())
    unused = re.fullmatch(r"Unused Tokens: \[(.*)\]\.?", text)
    if unused:
        text = f"{unused[1].replace(chr(39), '')}: not understood here"
    elif text.endswith("specified multiple times."):
        text = text.removesuffix(".") + "; it is given once"
    command = " ".join(words[:2]) if words[0] in PAIRED else words[0]
    return Misconfigured(text[:1].lower() + text[1:].rstrip("."), hint=f"fencepost {command} --help")


def usage(what: str, hint: str) -> dict[str, str]:
    """A usage error's document."""
    return {"kind": "misconfigured", "what": what, "where": "", "hint": hint}


def tell(document: dict[str, str], words: str, code: int, *, as_json: bool) -> int:
    """An error on stderr, or as the one JSON document on stdout; gives back its code."""
    if as_json:
        terminal.say(json.dumps({"error": document}))
    else:
        terminal.note(words)
    return code
