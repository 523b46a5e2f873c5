"""Which sample a command is about, where several have run in one folder."""

import fcntl
from pathlib import Path

import pytest

from fencepost.cli.regions import samples
from fencepost.dev.sample import fresh_words, stand_ins


def test_the_one_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`up`, Ctrl-C, `up --provider bind`, `status`: about the sample that runs, not about the first one's rest."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    for name in ("demo", "demo-bind", "demo-route53-dev"):
        folder = tmp_path / ".fencepost" / name
        folder.mkdir(parents=True)
        (folder / "region.toml").touch()
    assert [each.parent.name for each in samples()] == ["demo", "demo-bind", "demo-route53-dev"]
    with (tmp_path / ".fencepost" / "demo-bind" / "supervisor.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert [each.parent.name for each in samples()] == ["demo-bind", "demo", "demo-route53-dev"]


@pytest.mark.parametrize(
    ("provider", "store", "words"),
    [
        ("embedded", "sqlite", "up --fresh"),
        ("bind", "postgresql", "up --fresh --provider bind --store postgresql"),
        ("route53-dev", "sqlite", "up --fresh --provider route53-dev"),
    ],
)
def test_what_resets_it_is_about_it(provider: str, store: str, words: str) -> None:
    """`up --provider bind` ended with "`up --fresh` resets", which forgets another sample."""
    assert fresh_words(stand_ins(provider, store)) == words
