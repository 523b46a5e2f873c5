"""Durations that are a slip: nobody means what ends beyond the year 9999."""

import time
from pathlib import Path

import pytest
from called import call

from fencepost.cli.flags import duration, until
from fencepost.core.instant import DAY
from fencepost.ports import Misconfigured
from fencepost.roles.told import UNTIL_MOST
from fencepost.settings.initial import INITIAL


@pytest.mark.parametrize(
    "words", ["drain 192.0.2.1 --for 99999999d --reason x", "history --last 99999999d", "up --for 99999999d"]
)
def test_a_duration_beyond_all_use_is_refused(tmp_path: Path, words: str) -> None:
    """drain took it, "until beyond year 9999"."""
    (tmp_path / "region.toml").write_text(INITIAL)
    done = call(*words.split(), cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "'99999999d' is too long" in done.stderr
    assert "at most 50 years" in done.stderr


def test_what_the_command_line_takes_the_api_takes_too() -> None:
    """One limit is well within the other, and both within the store's numbers."""
    assert duration("18250d", "--for") == 50 * 365 * DAY
    assert time.time_ns() < until("18250d", "1h") < UNTIL_MOST
    with pytest.raises(Misconfigured, match="too long"):
        until("18251d", "1h")
    assert until("ever", "1h") == 0
