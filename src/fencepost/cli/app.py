"""The cyclopts application: which words call which function."""

from cyclopts import App, Parameter
from cyclopts.config import Env

from fencepost import __version__
from fencepost.cli import COMMANDS


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
    groups = {name: App(name=name) for name in sorted({words.split()[0] for words in COMMANDS if " " in words})}
    for group in groups.values():
        app.command(group)
    for words, where in COMMANDS.items():
        first, _, second = words.partition(" ")
        if second:
            groups[first].command(where, name=second)
        else:
            app.command(where, name=first)
    return app
