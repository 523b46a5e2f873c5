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
    (Fault.LAUNCH, Fault.FORGET, 4, 69_869),
    (Fault.LAUNCH, Fault.DIE, 5, 28_624),
    (Fault.LAUNCH, Fault.SKEW, 4, 13_513),
    (Fault.LAUNCH, Fault.SILENT, 4, 37_110),
    (Fault.LAUNCH, Fault.UNKNOWN, 5, 33_594),
    (Fault.LAUNCH, Fault.WIPE, 4, 89_727),
    (Fault.LAUNCH, Fault.RESTORE, 4, 118_643),
    (Fault.TERMINATE, Fault.TERMINATE, 4, 17_328),
    (Fault.TERMINATE, Fault.CORDON, 4, 50_567),
    (Fault.TERMINATE, Fault.REPEAT, 4, 35_231),
    (Fault.TERMINATE, Fault.CRASH, 4, 39_265),
    (Fault.TERMINATE, Fault.RESTART, 4, 80_414),
    (Fault.TERMINATE, Fault.MIDWAY, 4, 37_309),
    (Fault.TERMINATE, Fault.REBOOT, 4, 85_974),
    (Fault.TERMINATE, Fault.FORGET, 4, 132_482),
    (Fault.TERMINATE, Fault.DIE, 5, 65_164),
    (Fault.TERMINATE, Fault.SKEW, 4, 34_680),
    (Fault.TERMINATE, Fault.SILENT, 4, 97_814),
    (Fault.TERMINATE, Fault.UNKNOWN, 5, 75_991),
    (Fault.TERMINATE, Fault.WIPE, 4, 191_165),
    (Fault.TERMINATE, Fault.RESTORE, 4, 401_850),
    (Fault.CORDON, Fault.CORDON, 4, 29_632),
    (Fault.CORDON, Fault.REPEAT, 4, 34_842),
    (Fault.CORDON, Fault.CRASH, 4, 36_406),
    (Fault.CORDON, Fault.RESTART, 4, 79_444),
    (Fault.CORDON, Fault.MIDWAY, 4, 37_731),
    (Fault.CORDON, Fault.REBOOT, 4, 90_110),
    (Fault.CORDON, Fault.FORGET, 4, 140_405),
    (Fault.CORDON, Fault.DIE, 5, 68_404),
    (Fault.CORDON, Fault.SKEW, 4, 34_594),
    (Fault.CORDON, Fault.SILENT, 4, 95_500),
    (Fault.CORDON, Fault.UNKNOWN, 5, 90_201),
    (Fault.CORDON, Fault.WIPE, 4, 233_907),
    (Fault.CORDON, Fault.RESTORE, 4, 374_514),
    (Fault.REPEAT, Fault.REPEAT, 4, 18_212),
    (Fault.REPEAT, Fault.CRASH, 4, 27_227),
    (Fault.REPEAT, Fault.RESTART, 4, 56_033),
    (Fault.REPEAT, Fault.MIDWAY, 4, 25_819),
    (Fault.REPEAT, Fault.REBOOT, 4, 63_211),
    (Fault.REPEAT, Fault.FORGET, 4, 96_738),
    (Fault.REPEAT, Fault.DIE, 5, 46_976),
    (Fault.REPEAT, Fault.SKEW, 4, 24_262),
    (Fault.REPEAT, Fault.SILENT, 4, 68_923),
    (Fault.REPEAT, Fault.UNKNOWN, 5, 60_023),
    (Fault.REPEAT, Fault.WIPE, 4, 133_328),
    (Fault.REPEAT, Fault.RESTORE, 4, 160_232),
    (Fault.CRASH, Fault.CRASH, 4, 32_645),
    (Fault.CRASH, Fault.RESTART, 4, 55_301),
    (Fault.CRASH, Fault.MIDWAY, 4, 37_767),
    (Fault.CRASH, Fault.REBOOT, 4, 64_844),
    (Fault.CRASH, Fault.FORGET, 4, 103_564),
    (Fault.CRASH, Fault.DIE, 5, 53_270),
    (Fault.CRASH, Fault.SKEW, 4, 26_571),
    (Fault.CRASH, Fault.SILENT, 4, 73_396),
    (Fault.CRASH, Fault.UNKNOWN, 5, 67_949),
    (Fault.CRASH, Fault.WIPE, 4, 187_012),
    (Fault.CRASH, Fault.RESTORE, 4, 343_149),
    (Fault.RESTART, Fault.RESTART, 4, 77_106),
    (Fault.RESTART, Fault.MIDWAY, 4, 59_207),
    (Fault.RESTART, Fault.REBOOT, 4, 119_903),
    (Fault.RESTART, Fault.FORGET, 4, 214_931),
    (Fault.RESTART, Fault.DIE, 5, 107_644),
    (Fault.RESTART, Fault.SKEW, 4, 53_396),
    (Fault.RESTART, Fault.SILENT, 4, 149_503),
    (Fault.RESTART, Fault.UNKNOWN, 5, 167_864),
    (Fault.RESTART, Fault.WIPE, 4, 305_554),
    (Fault.RESTART, Fault.RESTORE, 4, 410_155),
    (Fault.MIDWAY, Fault.MIDWAY, 4, 14_488),
    (Fault.MIDWAY, Fault.REBOOT, 4, 68_940),
    (Fault.MIDWAY, Fault.FORGET, 4, 132_553),
    (Fault.MIDWAY, Fault.DIE, 5, 51_922),
    (Fault.MIDWAY, Fault.SKEW, 4, 25_683),
    (Fault.MIDWAY, Fault.SILENT, 4, 80_124),
    (Fault.MIDWAY, Fault.UNKNOWN, 5, 93_903),
    (Fault.MIDWAY, Fault.WIPE, 4, 171_864),
    (Fault.MIDWAY, Fault.RESTORE, 4, 355_321),
    (Fault.REBOOT, Fault.REBOOT, 4, 94_052),
    (Fault.REBOOT, Fault.FORGET, 4, 235_745),
    (Fault.REBOOT, Fault.DIE, 5, 120_322),
    (Fault.REBOOT, Fault.SKEW, 4, 60_454),
    (Fault.REBOOT, Fault.SILENT, 4, 175_545),
    (Fault.REBOOT, Fault.UNKNOWN, 5, 190_441),
    (Fault.REBOOT, Fault.WIPE, 4, 364_079),
    (Fault.REBOOT, Fault.RESTORE, 4, 596_692),
    (Fault.FORGET, Fault.FORGET, 4, 197_257),
    (Fault.FORGET, Fault.DIE, 5, 185_734),
    (Fault.FORGET, Fault.SKEW, 4, 93_135),
    (Fault.FORGET, Fault.SILENT, 4, 264_967),
    (Fault.FORGET, Fault.UNKNOWN, 5, 295_268),
    (Fault.FORGET, Fault.WIPE, 4, 612_120),
    (Fault.FORGET, Fault.RESTORE, 4, 1_001_698),
    (Fault.DIE, Fault.DIE, 5, 23_248),
    (Fault.DIE, Fault.SKEW, 5, 48_852),
    (Fault.DIE, Fault.SILENT, 5, 125_032),
    (Fault.DIE, Fault.UNKNOWN, 5, 59_644),
    (Fault.DIE, Fault.WIPE, 5, 263_868),
    (Fault.DIE, Fault.RESTORE, 5, 405_678),
    (Fault.SKEW, Fault.SILENT, 4, 68_278),
    (Fault.SKEW, Fault.UNKNOWN, 5, 64_549),
    (Fault.SKEW, Fault.WIPE, 4, 131_903),
    (Fault.SKEW, Fault.RESTORE, 4, 161_336),
    (Fault.SILENT, Fault.SILENT, 4, 80_036),
    (Fault.SILENT, Fault.UNKNOWN, 5, 356_895),
    (Fault.SILENT, Fault.WIPE, 4, 380_600),
    (Fault.SILENT, Fault.RESTORE, 4, 651_675),
    (Fault.UNKNOWN, Fault.UNKNOWN, 5, 37_526),
    (Fault.UNKNOWN, Fault.WIPE, 5, 327_864),
    (Fault.UNKNOWN, Fault.RESTORE, 5, 729_479),
    (Fault.WIPE, Fault.WIPE, 4, 301_932),
    (Fault.WIPE, Fault.RESTORE, 4, 1_671_360),
    (Fault.RESTORE, Fault.RESTORE, 4, 758_187),
    (Fault.LAUNCH, Fault.FULL, 4, 60_231),
    (Fault.TERMINATE, Fault.FULL, 4, 70_984),
    (Fault.CORDON, Fault.FULL, 4, 87_595),
    (Fault.REPEAT, Fault.FULL, 4, 59_460),
    (Fault.CRASH, Fault.FULL, 4, 66_359),
    (Fault.RESTART, Fault.FULL, 4, 144_085),
    (Fault.MIDWAY, Fault.FULL, 4, 52_046),
    (Fault.REBOOT, Fault.FULL, 4, 156_658),
    (Fault.FORGET, Fault.FULL, 4, 188_802),
    (Fault.DIE, Fault.FULL, 5, 107_970),
    (Fault.SKEW, Fault.FULL, 4, 58_945),
    (Fault.SILENT, Fault.FULL, 4, 158_416),
    (Fault.UNKNOWN, Fault.FULL, 5, 111_639),
    (Fault.WIPE, Fault.FULL, 4, 266_372),
    (Fault.RESTORE, Fault.FULL, 4, 461_461),
    (Fault.FULL, Fault.FULL, 4, 53_741),
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
