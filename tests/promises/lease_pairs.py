"""Two faults of leases together, each pair that there is: for how many renewals it is walked, and all its states.

A launch besides, one manager, the host held at first, one message under way, messages lost and late at any time.

    python tests/promises/lease_pairs.py

prints the table that stands in docs/concepts/leases.md.
"""

import sys

from fencepost.explorer.fleet_command import leases_of
from fencepost.world.leases import BESIDES, Fault

Row = tuple[Fault, Fault, int, int]
WALKED: tuple[Row, ...] = (
    (Fault.LAUNCH, Fault.LAUNCH, 4, 6_686),
    (Fault.LAUNCH, Fault.TERMINATE, 4, 45_168),
    (Fault.LAUNCH, Fault.CORDON, 4, 19_056),
    (Fault.LAUNCH, Fault.REPEAT, 4, 13_544),
    (Fault.LAUNCH, Fault.CRASH, 4, 15_587),
    (Fault.LAUNCH, Fault.RESTART, 4, 30_616),
    (Fault.LAUNCH, Fault.MIDWAY, 4, 22_652),
    (Fault.LAUNCH, Fault.REBOOT, 4, 41_875),
    (Fault.LAUNCH, Fault.FORGET, 3, 33_548),
    (Fault.LAUNCH, Fault.DIE, 5, 28_624),
    (Fault.LAUNCH, Fault.SKEW, 4, 13_513),
    (Fault.LAUNCH, Fault.SILENT, 4, 37_110),
    (Fault.LAUNCH, Fault.UNKNOWN, 5, 33_594),
    (Fault.LAUNCH, Fault.WIPE, 3, 40_078),
    (Fault.LAUNCH, Fault.RESTORE, 3, 35_340),
    (Fault.TERMINATE, Fault.TERMINATE, 4, 17_328),
    (Fault.TERMINATE, Fault.CORDON, 4, 50_567),
    (Fault.TERMINATE, Fault.REPEAT, 4, 35_231),
    (Fault.TERMINATE, Fault.CRASH, 4, 39_265),
    (Fault.TERMINATE, Fault.RESTART, 3, 39_182),
    (Fault.TERMINATE, Fault.MIDWAY, 4, 37_309),
    (Fault.TERMINATE, Fault.REBOOT, 3, 42_033),
    (Fault.TERMINATE, Fault.FORGET, 3, 65_784),
    (Fault.TERMINATE, Fault.DIE, 5, 65_164),
    (Fault.TERMINATE, Fault.SKEW, 4, 34_680),
    (Fault.TERMINATE, Fault.SILENT, 3, 49_384),
    (Fault.TERMINATE, Fault.UNKNOWN, 5, 75_991),
    (Fault.TERMINATE, Fault.WIPE, 3, 95_929),
    (Fault.TERMINATE, Fault.RESTORE, 3, 174_729),
    (Fault.CORDON, Fault.CORDON, 4, 29_632),
    (Fault.CORDON, Fault.REPEAT, 4, 34_842),
    (Fault.CORDON, Fault.CRASH, 4, 36_406),
    (Fault.CORDON, Fault.RESTART, 3, 37_296),
    (Fault.CORDON, Fault.MIDWAY, 4, 37_731),
    (Fault.CORDON, Fault.REBOOT, 3, 42_861),
    (Fault.CORDON, Fault.FORGET, 3, 67_460),
    (Fault.CORDON, Fault.DIE, 5, 68_404),
    (Fault.CORDON, Fault.SKEW, 4, 34_594),
    (Fault.CORDON, Fault.SILENT, 3, 47_128),
    (Fault.CORDON, Fault.UNKNOWN, 5, 90_201),
    (Fault.CORDON, Fault.WIPE, 3, 111_798),
    (Fault.CORDON, Fault.RESTORE, 3, 139_903),
    (Fault.REPEAT, Fault.REPEAT, 4, 18_212),
    (Fault.REPEAT, Fault.CRASH, 4, 27_227),
    (Fault.REPEAT, Fault.RESTART, 4, 56_033),
    (Fault.REPEAT, Fault.MIDWAY, 4, 25_819),
    (Fault.REPEAT, Fault.REBOOT, 4, 63_211),
    (Fault.REPEAT, Fault.FORGET, 3, 47_043),
    (Fault.REPEAT, Fault.DIE, 5, 46_976),
    (Fault.REPEAT, Fault.SKEW, 4, 24_262),
    (Fault.REPEAT, Fault.SILENT, 3, 34_291),
    (Fault.REPEAT, Fault.UNKNOWN, 5, 60_023),
    (Fault.REPEAT, Fault.WIPE, 3, 64_233),
    (Fault.REPEAT, Fault.RESTORE, 3, 58_011),
    (Fault.CRASH, Fault.CRASH, 4, 32_645),
    (Fault.CRASH, Fault.RESTART, 4, 55_301),
    (Fault.CRASH, Fault.MIDWAY, 4, 37_767),
    (Fault.CRASH, Fault.REBOOT, 4, 64_844),
    (Fault.CRASH, Fault.FORGET, 3, 49_878),
    (Fault.CRASH, Fault.DIE, 5, 53_270),
    (Fault.CRASH, Fault.SKEW, 4, 26_571),
    (Fault.CRASH, Fault.SILENT, 3, 35_168),
    (Fault.CRASH, Fault.UNKNOWN, 5, 67_949),
    (Fault.CRASH, Fault.WIPE, 3, 90_421),
    (Fault.CRASH, Fault.RESTORE, 3, 131_511),
    (Fault.RESTART, Fault.RESTART, 3, 36_439),
    (Fault.RESTART, Fault.MIDWAY, 4, 59_207),
    (Fault.RESTART, Fault.REBOOT, 3, 57_302),
    (Fault.RESTART, Fault.FORGET, 3, 103_355),
    (Fault.RESTART, Fault.DIE, 5, 107_644),
    (Fault.RESTART, Fault.SKEW, 4, 53_396),
    (Fault.RESTART, Fault.SILENT, 3, 72_447),
    (Fault.RESTART, Fault.UNKNOWN, 5, 167_864),
    (Fault.RESTART, Fault.WIPE, 3, 146_106),
    (Fault.RESTART, Fault.RESTORE, 3, 159_904),
    (Fault.MIDWAY, Fault.MIDWAY, 4, 14_488),
    (Fault.MIDWAY, Fault.REBOOT, 4, 68_940),
    (Fault.MIDWAY, Fault.FORGET, 3, 64_106),
    (Fault.MIDWAY, Fault.DIE, 5, 51_922),
    (Fault.MIDWAY, Fault.SKEW, 4, 25_683),
    (Fault.MIDWAY, Fault.SILENT, 3, 38_872),
    (Fault.MIDWAY, Fault.UNKNOWN, 5, 93_903),
    (Fault.MIDWAY, Fault.WIPE, 3, 82_472),
    (Fault.MIDWAY, Fault.RESTORE, 3, 149_384),
    (Fault.REBOOT, Fault.REBOOT, 3, 45_269),
    (Fault.REBOOT, Fault.FORGET, 3, 114_250),
    (Fault.REBOOT, Fault.DIE, 5, 120_322),
    (Fault.REBOOT, Fault.SKEW, 4, 60_454),
    (Fault.REBOOT, Fault.SILENT, 3, 85_835),
    (Fault.REBOOT, Fault.UNKNOWN, 5, 190_441),
    (Fault.REBOOT, Fault.WIPE, 3, 177_603),
    (Fault.REBOOT, Fault.RESTORE, 3, 251_823),
    (Fault.FORGET, Fault.FORGET, 3, 98_304),
    (Fault.FORGET, Fault.DIE, 5, 185_734),
    (Fault.FORGET, Fault.SKEW, 3, 41_301),
    (Fault.FORGET, Fault.SILENT, 3, 130_420),
    (Fault.FORGET, Fault.UNKNOWN, 5, 295_268),
    (Fault.FORGET, Fault.WIPE, 3, 306_497),
    (Fault.FORGET, Fault.RESTORE, 3, 440_112),
    (Fault.DIE, Fault.DIE, 5, 23_248),
    (Fault.DIE, Fault.SKEW, 5, 48_852),
    (Fault.DIE, Fault.SILENT, 5, 125_032),
    (Fault.DIE, Fault.UNKNOWN, 5, 59_644),
    (Fault.DIE, Fault.WIPE, 3, 63_758),
    (Fault.DIE, Fault.RESTORE, 5, 414_632),
    (Fault.SKEW, Fault.SILENT, 4, 68_278),
    (Fault.SKEW, Fault.UNKNOWN, 5, 64_549),
    (Fault.SKEW, Fault.WIPE, 3, 57_619),
    (Fault.SKEW, Fault.RESTORE, 3, 52_960),
    (Fault.SILENT, Fault.SILENT, 3, 39_878),
    (Fault.SILENT, Fault.UNKNOWN, 5, 356_895),
    (Fault.SILENT, Fault.WIPE, 3, 187_195),
    (Fault.SILENT, Fault.RESTORE, 3, 271_077),
    (Fault.UNKNOWN, Fault.UNKNOWN, 5, 37_526),
    (Fault.UNKNOWN, Fault.WIPE, 3, 55_662),
    (Fault.UNKNOWN, Fault.RESTORE, 5, 744_126),
    (Fault.WIPE, Fault.WIPE, 3, 149_297),
    (Fault.WIPE, Fault.RESTORE, 3, 748_966),
    (Fault.RESTORE, Fault.RESTORE, 3, 258_577),
)
"""Two faults, renewals, states."""


def table() -> list[str]:
    """The counts as lines of Markdown: a triangle, since a pair has no order."""
    counts = {frozenset(row[:2]): row for row in WALKED}
    heads = [each.value for each in BESIDES]
    lines = [f"| | {' | '.join(heads)} |", f"| --- |{' --- |' * len(heads)}"]
    for at, one in enumerate(BESIDES):
        cells = [cell(counts.get(frozenset((one, other)))) for other in BESIDES[: at + 1]]
        lines.append(f"| {one.value} | {' | '.join(cells)} |{' |' * (len(BESIDES) - 1 - at)}")
    return lines


def cell(row: Row | None) -> str:
    """One pair's count; with how many renewals, where they are more than usual."""
    if row is None:
        return "broken"
    one, other, time, states = row
    return f"{states:,}" + (f" ({time})" if time != leases_of((one, other)).time else "")


if __name__ == "__main__":
    sys.stdout.write("\n".join(table()) + "\n")
