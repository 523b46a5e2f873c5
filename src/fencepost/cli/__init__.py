"""The command line. A command's module is imported when it is called, so that ``--help`` and ``status`` start fast.

``fencepost --help`` is written by hand (:mod:`fencepost.cli.help`); cyclopts reads everything past the
command's name. Every flag may also be set as ``FENCEPOST_FLAG`` in the environment; the flag wins.
"""

import sys

GROUPS = {
    "run": ("up", "run", "init", "check", "reload", "doctor"),
    "look": ("status", "explain", "history", "plan"),
    "change": ("drain", "keep", "pause", "rollback", "repair", "withdraw", "enact", "resume"),
    "fleet": (
        "fleet hosts",
        "fleet instances",
        "fleet launch",
        "fleet terminate",
        "fleet drain",
        "fleet cordon",
        "fleet forget",
        "fleet calibrate",
    ),
    "move in": ("import", "adopt", "store copy", "store restamp"),
    "prove": ("prove", "explore", "simulate"),
    "learn": ("replay", "incident list", "incident show", "incident record"),
    "practise": ("dev wipe", "dev agents", "dev route53"),
}
"""What there is, by what people come for."""

COMMANDS = {
    "up": "fencepost.cli.up:up",
    "run": "fencepost.cli.run:run",
    "init": "fencepost.cli.init:init",
    "check": "fencepost.cli.check:check",
    "reload": "fencepost.cli.reload:reload",
    "doctor": "fencepost.cli.doctor:doctor",
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
    "enact": "fencepost.cli.enact:enact",
    "resume": "fencepost.cli.resume:resume",
    "fleet hosts": "fencepost.cli.fleet.tables:hosts",
    "fleet instances": "fencepost.cli.fleet.tables:instances",
    "fleet launch": "fencepost.cli.fleet.launch:launch",
    "fleet terminate": "fencepost.cli.fleet.words:terminate",
    "fleet drain": "fencepost.cli.fleet.words:drain",
    "fleet cordon": "fencepost.cli.fleet.words:cordon",
    "fleet forget": "fencepost.cli.fleet.forget:forget",
    "fleet calibrate": "fencepost.cli.fleet.calibrate:calibrate",
    "prove": "fencepost.cli.prove:prove",
    "explore": "fencepost.cli.explore:explore",
    "simulate": "fencepost.cli.simulate:simulate",
    "replay": "fencepost.cli.replay:replay",
    "incident list": "fencepost.cli.incident:list_",
    "incident show": "fencepost.cli.incident:show",
    "incident record": "fencepost.cli.incident:record",
    "import": "fencepost.cli.import_:import_",
    "adopt": "fencepost.cli.adopt:adopt",
    "store copy": "fencepost.cli.store_copy:store_copy",
    "store restamp": "fencepost.cli.store_restamp:store_restamp",
    "dev wipe": "fencepost.cli.wipe:wipe",
    "dev agents": "fencepost.cli.dev_agents:agents",
    "dev route53": "fencepost.cli.dev_route53:route53",
}
"""Each command and where it is; a module is imported when its command is called."""


def main() -> None:
    """Entry point of the ``fencepost`` command. Ctrl-C ends it quietly from here on, also while modules are read."""
    try:
        from fencepost.cli.errors import guarded
        from fencepost.cli.streams import take_over

        take_over()
        code = guarded(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
