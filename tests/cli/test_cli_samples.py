"""Which sample a command is about, where several have run in one folder."""

import fcntl
import os
from pathlib import Path

import pytest

from fencepost.cli.regions import samples
from fencepost.dev.engines import WHOSE, bind, clear_forgotten, dsn_of
from fencepost.dev.sample import fresh_words, sample_text, stand_ins
from fencepost.ports import Misconfigured
from fencepost.settings import judge


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


@pytest.mark.parametrize("provider", ["embedded", "bind", "route53-dev"])
def test_a_sample_is_warned_of_nothing_but_its_addresses(provider: str, tmp_path: Path) -> None:
    """A newcomer's first `doctor` said that the sample's own BIND is a real provider that drills damage."""
    (tmp_path / "tsig.key").write_text('key "k" { algorithm hmac-sha256; secret "c2VjcmV0"; };\n')
    (tmp_path / "tsig.key").chmod(0o600)
    report = judge(sample_text(provider), str(tmp_path / "region.toml"), {}, ipv6=True)
    assert not report.mistakes
    assert not any("drills" in str(each) for each in report.cautions)


def test_an_engine_whose_secret_is_gone_says_so_and_one_that_starts_again_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample's BIND and PostgreSQL ended with a traceback, as by a defect, while a key file was away; and on a full
    disk BIND's configuration was emptied at a restart (seen by hand)."""
    monkeypatch.setattr("fencepost.dev.engines.installed", lambda program, *_: f"/usr/sbin/{program}")
    key, dsn = tmp_path / "tsig.key", tmp_path / "postgresql.dsn"
    key.write_text('key "k" { algorithm hmac-sha256; secret "c2VjcmV0"; };\n')
    dsn.write_text("postgresql://u:p@127.0.0.1:5304/postgres\n")
    for file in (key, dsn):
        file.chmod(0o600)
    region = judge(sample_text("bind", "postgresql"), str(tmp_path / "region.toml"), {}, ipv6=True).region
    assert region is not None
    bind(region, tmp_path / "bind")
    config = tmp_path / "bind" / "named.conf"
    written = config.read_text()
    with monkeypatch.context() as full:
        full.setattr(Path, "write_text", lambda *_: pytest.fail("there is nothing to write"))
        bind(region, tmp_path / "bind")
    assert config.read_text() == written
    for file, use in ((key, lambda: bind(region, tmp_path / "bind")), (dsn, lambda: dsn_of(region))):
        file.unlink()
        with pytest.raises(Misconfigured, match=f"{file.name} is missing"):
            use()


def test_a_cluster_whose_sample_is_gone_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root PostgreSQL's files lie away from the sample's: forty megabytes a sample, and nobody knew whose."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "made").touch()
    for name, whose, pid in (("gone", "gone", 0), ("kept", "kept", 0), ("runs", "gone", os.getpid()), ("old", "", 0)):
        data = tmp_path / f"fencepost-postgresql-{name}"
        data.mkdir()
        if whose:
            (data / WHOSE).write_text(f"{tmp_path / whose}\n")
        if pid:
            (data / "postmaster.pid").write_text(f"{pid}\n/tmp\n")
    clear_forgotten()
    left = sorted(path.name.rpartition("-")[2] for path in tmp_path.glob("fencepost-postgresql-*"))
    assert left == ["kept", "old", "runs"]


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
