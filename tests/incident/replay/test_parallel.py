"""Many replays side by side."""

from collections.abc import Iterator

from fencepost.incident.replay.parallel import in_parallel

JOBS = 20_000


def length(number: int, text: str) -> int:
    return number + len(text)


def test_jobs_are_made_as_they_are_handed_out_and_results_come_in_their_order() -> None:
    """A hundred thousand draws would else all stand in memory before the first of them is replayed."""
    made = 0

    def jobs() -> Iterator[tuple[int, str]]:
        nonlocal made
        for made in range(1, JOBS + 1):
            yield made, "x" * 4096

    results = in_parallel(length, jobs())
    assert [next(results) for _ in range(3)] == [4097, 4098, 4099]
    assert made < JOBS
    results.close()  # type: ignore[attr-defined]
