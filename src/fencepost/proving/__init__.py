"""Races against a DNS provider, on a scratch name of its user's own domain: does it hold what fencepost builds on?

Everything here rests on one thing that the provider must do: refuse a write, whole, when what its writer saw isn't what
stands. Tests show that for servers that can run on one machine, and for stand-ins of the rest. ``fencepost prove``
shows it where it counts, by the same ports that enactors write through.
"""

from fencepost.proving.cleaning import clean, ours
from fencepost.proving.races import RACES, Race
from fencepost.proving.report import document, markdown
from fencepost.proving.scene import OWNER, WRITES, Scene, scratch_names

__all__ = ["OWNER", "RACES", "WRITES", "Race", "Scene", "clean", "document", "markdown", "ours", "scratch_names"]
