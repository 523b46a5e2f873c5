"""Capacity as well as health: what the targets themselves say they can carry becomes the share of callers they get."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from regions import RunningRegion

NAME = "api.example.test"
CAPACITY = {"127.0.1.1": 100, "127.0.1.2": 100, "127.0.2.1": 100, "127.0.2.2": 100, "127.0.3.1": 100, "127.0.3.2": 20}


def test_a_target_that_says_it_can_carry_a_fifth_gets_about_a_fifth_of_the_answers(tmp_path: Path) -> None:
    """Readings of all zones, their median, gathered, in the marker, and drawn by weight / largest weight."""

    def edit(text: str) -> str:
        port = text.partition('url = "http://:')[2].partition("/")[0]
        return text.replace("[pool.web.probe]", f'[pool.web]\ncapacity = "http://:{port}/capacity"\n[pool.web.probe]')

    region = RunningRegion(tmp_path, edit=edit, targets=False)
    targets = [
        subprocess.Popen(
            [sys.executable, "-m", "fencepost.dev.target", address, str(region.target_port), str(capacity)],
            stdout=subprocess.DEVNULL,
        )
        for address, capacity in CAPACITY.items()
    ]
    try:
        with region:

            def weighed() -> dict[str, int]:
                marker = region.marker(NAME)
                if marker is None or marker.content is None:
                    return {}
                return dict(zip(marker.content.a, marker.content.weights, strict=True))

            # 20 of 100, on a scale to 255; while some haven't told yet there are other weights.
            wanted = dict.fromkeys(CAPACITY, 255) | {"127.0.3.2": 51}
            region.until(lambda: weighed() == wanted, 30, "the weights are in the marker")
            seen = Counter(address for _ in range(300) for address in region.addresses(NAME))
            assert seen["127.0.1.1"] == 300, "weight = largest: in every answer"
            assert 20 <= seen["127.0.3.2"] <= 110, "a fifth of 300, give or take"
    finally:
        for target in targets:
            target.terminate()
            target.wait()
