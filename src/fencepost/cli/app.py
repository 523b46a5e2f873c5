"""The cyclopts application: which words call which function."""

from cyclopts import App, Parameter
from cyclopts.config import Env

from fencepost import __version__
from fencepost.cli import COMMANDS

GROUPS_OF_COMMANDS = {
    "fleet": "Hosts, and the instances that are launched on them.",
    "incident": "Records of what happened, here and elsewhere.",
    "dev": "Practise: stand-ins, and a careless writer (that one in regions with drills = true only).",
    "store": "What a region's store is moved with.",
}
"""The first words of commands of two words."""


def make() -> App:
    """The application. It raises its errors, and returns what a command returns."""
    app = App(
        name="fencepost",
        version=__version__,
        help_format="plaintext",
        help_formatter="plain",
        default_parameter=Parameter(negative=()),
        config=Env("FENCEPOST_", command=False, show=False),
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    groups = {name: App(name=name, help=help_) for name, help_ in GROUPS_OF_COMMANDS.items()}
    for group in groups.values():
        app.command(group)
    for words, where in COMMANDS.items():
        first, _, second = words.partition(" ")
        if second:
            groups[first].command(where, name=second)
        else:
            app.command(where, name=first)
    return app
