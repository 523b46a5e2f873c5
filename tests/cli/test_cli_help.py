"""What the command line says of itself, and how fast."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from called import call

from fencepost.cli import COMMANDS, GROUPS
from fencepost.cli.errors import PAIRED
from fencepost.cli.help import ABOUT, EXAMPLES, PAIRS, overall

SLOW = ("rich", "dns", "starlette", "uvicorn", "uvloop", "sqlite3", "cyclopts")


def test_help_opens_with_three_examples_and_names_every_command() -> None:
    """clig.dev, "Lead with examples": the first thing read is something to paste."""
    lines = overall().splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["fencepost"] * 3
    for name in COMMANDS:
        assert f" {name} " in overall()
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_has_a_help_that_opens_with_three_examples(name: str) -> None:
    """Each command's module is importable, and its help says how it is called before anything else."""
    done = call(*name.split(), "--help")
    assert done.returncode == 0, done.stderr
    examples = [line for line in done.stdout.split("Usage:")[0].splitlines() if line.startswith("  fencepost ")]
    assert len(examples) == 3
    assert f"Usage: fencepost {name}" in done.stdout
    assert "ARGS" not in done.stdout, "its arguments have names"
    assert len(EXAMPLES[name]) == 3
    assert ABOUT[name]


@pytest.mark.parametrize("first", sorted(PAIRS))
def test_the_first_of_two_words_says_what_each_second_does(first: str, tmp_path: Path) -> None:
    """A bare list of words sends a newcomer from one --help to the next."""
    said = call(first, "--help", cwd=tmp_path).stdout
    seconds = [name.partition(" ")[2] for name in COMMANDS if name.startswith(f"{first} ")]
    assert sorted(name for _, name, _ in PAIRS[first][2]) == sorted(seconds)
    for second in seconds:
        assert re.search(rf"^  .{{0,12}} {second} .*\.$", said, re.MULTILINE), second
    examples = [line.split() for line in said.splitlines()[:3]]
    assert all(words[0] == "fencepost" and " ".join(words[1:3]) in COMMANDS for words in examples)
    for page in re.findall(r"docs/\S+\.md", said):
        assert (Path(__file__).parents[2] / page).is_file()
    assert "docs/" in said
    assert all(len(line) <= 80 for line in said.splitlines())
    assert call(first, cwd=tmp_path).stdout == said
    assert call("help", first, seconds[0], cwd=tmp_path).stdout == call(first, seconds[0], "--help").stdout


def test_first_words_are_the_same_everywhere() -> None:
    """A second list of them would go stale."""
    assert sorted(PAIRS) == sorted({name.split()[0] for name in COMMANDS if " " in name}) == sorted(PAIRED)


def test_ups_for_is_its_own() -> None:
    """It had the words of the overrides, "Default: 1h": but `up` runs until it is interrupted."""
    shown = next(line for line in call("up", "--help").stdout.splitlines() if line.strip().startswith("--for "))
    assert "Default: on until Ctrl-C" in shown
    assert "1h" not in shown
    assert "resume" not in shown


def test_no_words_at_all_is_a_question_for_help(tmp_path: Path) -> None:
    """``fencepost`` alone does nothing but say what there is."""
    done = call(cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, overall().strip())
    assert not list(tmp_path.iterdir())


def test_help_loads_nothing_that_is_slow_to_load() -> None:
    """Start-up is felt at each command: the help is printed before anything else is imported."""
    code = """
import sys
sys.argv = ["fencepost", "--help"]
try:
    from fencepost.cli import main; main()
except SystemExit:
    print(" ".join(sys.modules), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "fencepost" in loaded
    assert not loaded & set(SLOW)


def test_status_loads_neither_dns_nor_web_nor_rich_while_the_api_answers() -> None:
    """The command asked most often asks the API by a plain socket; what draws or writes records isn't needed."""
    code = """
import sys
import fencepost.cli.app, fencepost.cli.looking, fencepost.cli.screen, fencepost.cli.status
fencepost.cli.app.make()
print(" ".join(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & (set(SLOW) - {"cyclopts"})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("statsu",), "fencepost status"),
        (("drian",), "fencepost drain"),
        (("dev", "wpe"), "fencepost dev wipe"),
        (("drain", "--reson", "x"), "--reason"),
        (("xyzzy",), "fencepost --help"),
        (("--watch", "status"), "comes after a command"),
        (("status", "--color", "mauve"), "auto, always or never"),
        (("withdraw",), "requires"),
    ],
)
def test_a_slip_of_the_pen_names_the_nearest_right_word(words: tuple[str, ...], said: str) -> None:
    """Usage errors exit with 2, in two lines, without a box and without a traceback."""
    done = call(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert not done.stdout
    assert "Traceback" not in done.stderr
    assert "─" not in done.stderr


def test_a_usage_error_is_a_document_too_when_json_was_asked_for() -> None:
    """One document on stdout, on refusal too: a script needn't read stderr."""
    import json

    done = call("drain", "--reson", "x", "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "misconfigured"
    assert sorted(error) == ["hint", "kind", "what", "where"]


def test_a_flag_and_what_it_does_are_one_line_that_wraps_under_it() -> None:
    """Texts broke where their docstrings do, and again where the terminal ends."""
    text = call("explore", "--help").stdout.partition("Parameters:\n")[2]
    assert [line for line in text.splitlines() if line and not line.startswith("  --")] == []
