"""The command line. A command's module is imported when it is called, so that ``--help`` and ``status`` start fast.

``fencepost --help`` is written by hand (:mod:`fencepost.cli.help`) and imports nothing else; cyclopts reads everything
past the command's name. Every flag may also be set as ``FENCEPOST_FLAG`` in the environment; the flag wins.
"""

import sys

GROUPS = {
    "run": ("up", "run", "init", "check", "reload"),
    "look": ("status", "explain", "history", "plan"),
    "change": ("drain", "keep", "pause", "rollback", "repair", "withdraw", "resume"),
    "prove": ("explore",),
    "practise": ("dev wipe",),
}
"""What there is, by what people come for."""

COMMANDS = {
    "up": "fencepost.cli.up:up",
    "run": "fencepost.cli.run:run",
    "init": "fencepost.cli.init:init",
    "check": "fencepost.cli.check:check",
    "reload": "fencepost.cli.reload:reload",
    "status": "fencepost.cli.status:status",
    "explain": "fencepost.cli.explain:explain",
    "history": "fencepost.cli.history:history",
    "plan": "fencepost.cli.plan:plan",
    "drain": "fencepost.cli.drain:drain",
    "keep": "fencepost.cli.drain:keep",
    "pause": "fencepost.cli.pause:pause",
    "rollback": "fencepost.cli.rollback:rollback",
    "repair": "fencepost.cli.repair:repair",
    "withdraw": "fencepost.cli.withdraw:withdraw",
    "resume": "fencepost.cli.resume:resume",
    "explore": "fencepost.cli.explore:explore",
    "dev wipe": "fencepost.cli.wipe:wipe",
}
"""Each command and where it is; a module is imported when its command is called."""


def main() -> None:
    """Entry point of the ``fencepost`` command."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help", "help"):
        from fencepost.cli.help import overall

        print(overall())
        sys.exit(0)
    from fencepost.cli.errors import guarded

    sys.exit(guarded(words))
