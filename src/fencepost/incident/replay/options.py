"""What may differ between replays of one scenario."""

from msgspec import Struct

from fencepost.incident.replay.guards import NONE, Guards


class Options(Struct, frozen=True, gc=False):
    """What may differ between replays of one scenario. ``outage_s`` forces an outage of that length, guards or not."""

    hosts: int = 100_000
    seed: int = 1
    guards: Guards = NONE
    operators: bool = True
    outage_s: int | None = None


AS_IT_WAS = Options()
