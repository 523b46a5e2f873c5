"""Commands that need no running region: init, check, plan before the first start, and what the rest say without one."""

import json
import socket
from pathlib import Path

import pytest
from called import call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the sample region's file in it."""
    assert call("init", "--sample", cwd=tmp_path).returncode == 0
    return tmp_path


def test_init_writes_a_file_that_check_passes_and_never_overwrites_one(tmp_path: Path) -> None:
    """What init writes is right as it is."""
    assert call("init", cwd=tmp_path).returncode == 0
    assert call("check", cwd=tmp_path).returncode == 0
    before = (tmp_path / "region.toml").read_text()
    (tmp_path / "region.toml").write_text(before + "# mine\n")
    done = call("init", cwd=tmp_path)
    assert done.returncode == 2
    assert "left alone" in done.stderr
    assert (tmp_path / "region.toml").read_text() == before + "# mine\n"


def test_init_writes_over_an_empty_file_and_a_missing_one_has_no_line(tmp_path: Path) -> None:
    """`check` says of an empty file that init writes one, so init must."""
    path = tmp_path / "region.toml"
    for text in ("", " \n"):
        path.write_text(text)
        assert "fencepost init writes one" in call("check", cwd=tmp_path).stderr
        assert call("init", cwd=tmp_path).returncode == 0
        assert "[region]" in path.read_text()
    path.unlink()
    assert "none.toml: there is no such file" in call("check", "none.toml", cwd=tmp_path).stderr


def test_what_init_writes_shows_where_a_second_region_needs_other_ports(tmp_path: Path) -> None:
    """Both defaults are taken as soon as the sample runs."""
    call("init", cwd=tmp_path)
    text = (tmp_path / "region.toml").read_text()
    assert '[api]\nlisten = "127.0.0.1:5301"' in text
    assert '# listen   = "127.0.0.1:5300"' in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("stop",), "Ctrl-C"),
        (("--verison",), "--version"),
        (("statsu",), "fencepost status"),
        (("status", "extra"), "extra: not understood here"),
        (("drain", "--zone", "a", "--zone", "b", "--reason", "x"), "parameter --zone specified multiple times; it is"),
    ],
)
def test_words_that_mean_nothing_are_answered_with_what_does(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """Exit 2, and a line to paste; never the text of a library."""
    done = call(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Tokens" not in done.stderr


def test_check_says_what_the_numbers_come_to(folder: Path) -> None:
    """Shares of few targets surprise people."""
    done = call("check", cwd=folder)
    assert done.returncode == 0
    assert "automation takes out at most 2 (max_out), never leaves under 3" in done.stdout


def test_check_names_every_mistake_with_its_line(folder: Path) -> None:
    """All at once, on stderr, exit 2; --json gives the same as a list, and as the error."""
    path = folder / "region.toml"
    text = path.read_text().replace("interval =", "intervall =")
    path.write_text(text.replace('min_in    = "50%"', 'min_in = "90%"'))
    done = call("check", cwd=folder)
    assert done.returncode == 2
    assert 'unknown key "intervall" in [pool.web.probe]; did you mean "interval"?' in done.stderr
    assert "2 mistakes. Nothing was started" in done.stderr
    document = json.loads(call("check", "--json", cwd=folder).stdout)
    assert [mistake["line"] for mistake in document["mistakes"]] == sorted(m["line"] for m in document["mistakes"])
    assert document["error"]["kind"] == "misconfigured"


def test_the_file_may_be_named_by_flag_by_environment_or_as_a_word(folder: Path, tmp_path: Path) -> None:
    """A flag beats the environment; parent folders are never searched."""
    (folder / "region.toml").rename(folder / "eu-2.toml")
    assert call("check", cwd=folder).returncode == 2
    assert call("check", "eu-2.toml", cwd=folder).returncode == 0
    assert call("check", "--config", "eu-2.toml", cwd=folder).returncode == 0
    assert call("check", cwd=folder, FENCEPOST_CONFIG="eu-2.toml").returncode == 0
    assert call("check", "--config", "none.toml", cwd=folder, FENCEPOST_CONFIG="eu-2.toml").returncode == 2
    (folder / "below").mkdir()
    (folder / "eu-2.toml").rename(folder / "region.toml")
    assert call("check", cwd=folder / "below").returncode == 2


def test_a_flag_is_also_a_variable(folder: Path) -> None:
    """FENCEPOST_JSON=true stands for --json."""
    assert json.loads(call("check", cwd=folder, FENCEPOST_JSON="true").stdout)["ok"] is True


def test_plan_before_the_first_start_shows_what_a_start_would_do(folder: Path) -> None:
    """The preview is the way in, so it must work before anything runs."""
    done = call("plan", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "what a first start would do" in done.stdout
    assert "A: 0 addresses -> 6" in done.stdout
    assert "at no moment" not in done.stdout, "what stands nowhere yet keeps nothing in service"
    assert call("plan", "--exit-code", cwd=folder).returncode == 1
    document = json.loads(call("plan", "--format", "json", cwd=folder).stdout)
    assert [len(change["add"]) for change in document["changes"]] == [6, 6]
    assert not (folder / ".fencepost").exists(), "a preview leaves nothing behind"


def test_plan_before_the_first_start_names_who_has_its_ports(folder: Path) -> None:
    """Another region's server at the default port is none of ours, and isn't read."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        path = folder / "region.toml"
        path.write_text(path.read_text().replace('"127.0.0.1:5300"', f'"127.0.0.1:{port}"'))
        done = call("plan", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert f"a start would be refused: [dns] listen: 127.0.0.1:{port} is taken, by pid " in done.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("status",), 3),
        (("history",), 3),
        (("explain", "api.example.test"), 3),
        (("drain", "127.0.1.1", "--reason", "x"), 3),
        (("withdraw", "api.example.test", "--reason", "x", "--confirm", "api.example.test", "--timeout", "1s"), 3),
        (("reload",), 3),
    ],
)
def test_without_a_region_that_runs_commands_say_so_and_exit_by_whose_fault_it_is(
    folder: Path, words: tuple[str, ...], code: int
) -> None:
    """3: not reachable, start it and try again. The same as a document when asked for one."""
    path = folder / "region.toml"
    path.write_text(path.read_text().replace("127.0.0.1:5301", "127.0.0.1:9"))
    done = call(*words, cwd=folder)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    document = json.loads(call(*words, "--json", cwd=folder).stdout)
    assert document["error"]["kind"] in ("unavailable", "misconfigured")
