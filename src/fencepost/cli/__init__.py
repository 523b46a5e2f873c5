"""The command line. Commands are imported when they are called, so that ``--help`` and ``status`` start fast."""

import sys

from cyclopts import App

from fencepost import __version__

EXAMPLES = """fencepost: a regional control plane that can't empty its own front door.

Examples:
  fencepost up                            run the sample region here (or your own, if there is a region.toml)
  fencepost status                        what is in DNS, what is out, and whether a person is needed
  fencepost explain api.example.test      why each address is in or out
"""

app = App(name="fencepost", help=EXAMPLES, version=__version__, help_format="plaintext")

COMMANDS = {
    "up": "fencepost.cli.up:up",
    "run": "fencepost.cli.run:run",
}

for _name, _where in COMMANDS.items():
    app.command(_where, name=_name)


def main() -> None:
    """Entry point of the ``fencepost`` command."""
    from fencepost.cli.errors import guarded  # noqa: PLC0415

    sys.exit(guarded(app))
