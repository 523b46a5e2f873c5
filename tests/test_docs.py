"""The documentation can't drift: what it names exists, and what exists is named (Datasette's tests/test_docs.py)."""

import inspect
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from fencepost.cli import COMMANDS
from fencepost.cli.app import make
from fencepost.core import effects, events
from fencepost.core.promises import ALWAYS, EVENTUALLY
from fencepost.settings.keys import TABLES

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
TEXT = {name: (ROOT / name).read_text() for name in NAMES}
COMMON = {"--config", "--json", "--timeout", "--help", "--version"}
"""Flags that commands.md describes once, for all."""
NEGATIVE = ("--no-", "--empty-")
"""The parser's own opposites of flags."""
BLOCK = re.compile(r"^( *)```[a-z]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return BLOCK.sub("\n", text)


def slug(heading: str) -> str:
    """A heading's anchor, as GitHub makes it: letters, digits, hyphens; the rest goes, spaces become hyphens."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """Every anchor of a page."""
    return {slug(found) for found in re.findall(r"^#{1,6} (.+)$", prose(text), re.MULTILINE)}


@pytest.mark.parametrize("name", NAMES)
def test_every_link_and_anchor_resolves(name: str) -> None:
    """A runbook that leads nowhere is found at three in the morning otherwise."""
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(TEXT[name])):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        page = ((ROOT / name).parent / path).resolve() if path else ROOT / name
        there = page.exists() and page.is_relative_to(ROOT)
        if not there or (anchor and anchor not in anchors(page.read_text())):
            broken.append(target)
    assert not broken


def test_every_page_is_reached_from_the_readme() -> None:
    """A page that nothing links is read by nobody."""
    seen, todo = set(), ["README.md"]
    while todo:
        name = todo.pop()
        if name in seen or name not in TEXT:
            continue
        seen.add(name)
        for target in re.findall(r"\]\(([^)#\s]+)", prose(TEXT[name])):
            page = ((ROOT / name).parent / target).resolve()
            if page.is_relative_to(ROOT):
                todo.append(str(page.relative_to(ROOT)))
    assert set(NAMES) - seen == set()


def flags_of(command: str) -> set[str]:
    """Every flag that a command takes, as its parser knows them."""
    app = make()
    for word in command.split():
        app = app[word]
    collection = app.assemble_argument_collection()
    return {name for argument in collection for name in argument.names if name.startswith("-")}


FLAGS = {command: flags_of(command) for command in COMMANDS}


def test_the_flags_are_read_off_the_parser() -> None:
    """Otherwise the tests below would pass for want of anything to compare."""
    assert {"--for", "--sample", "--fresh", "--yes", "-y"} <= FLAGS["up"]
    assert {"--marker", "--both"} <= FLAGS["dev wipe"]


def documented() -> dict[str, set[str]]:
    """Commands and flags by the rows of commands.md."""
    rows = re.findall(r"^\| `fencepost ([a-z0-9 ]+)`[^|]*\|([^|]*)\|", TEXT["docs/operating/commands.md"], re.MULTILINE)
    return {name: set(re.findall(r"`(--[a-z-]+)`", flags)) for name, flags in rows}


def test_every_command_and_flag_is_documented() -> None:
    """And none that doesn't exist."""
    real = {
        name: {flag for flag in flags if flag.startswith("--") and not flag.startswith(NEGATIVE)} - COMMON
        for name, flags in FLAGS.items()
    }
    assert documented() == real


def test_every_setting_is_documented() -> None:
    """Each key of region.toml, in a row of its own; its default is held by the settings' own test."""
    rows = set(re.findall(r"^\| `(\w+)` \|", TEXT["docs/operating/settings.md"], re.MULTILINE))
    assert {key.name for keys in TABLES.values() for key in keys} <= rows


def commands_in(text: str) -> list[str]:
    """Each command line of ours on a page: in blocks at a line's start (after a prompt or a path), in prose as code."""
    found = []
    for _, block in BLOCK.findall(text):
        for line in block.splitlines():
            bare = re.sub(r"^\s*(\$ |ExecStart=)?(\S*/)?", "", line)
            if bare.startswith("fencepost ") and not bare.startswith("fencepost 0."):
                found.append(re.split(r"\s+#|  ", bare)[0])
    found += [code for code in re.findall(r"`([^`\n]+)`", prose(text)) if code.startswith("fencepost ")]
    return found


def meant(words: list[str]) -> str:
    """The command that the words after ``fencepost`` name; "" if there is none."""
    two = " ".join(words[:2])
    return two if two in COMMANDS else words[0] if words and words[0] in COMMANDS else ""


LINES = sorted({(name, line) for name in NAMES for line in commands_in(TEXT[name])})


def test_there_are_commands_to_try() -> None:
    """The extraction finds those in blocks, in units and in prose."""
    lines = {line for _, line in LINES}
    assert "fencepost explore" in lines
    assert "fencepost run enactor --zone %i --config /etc/fencepost/region.toml" in lines
    assert len(lines) > 40


@pytest.mark.parametrize(("name", "line"), LINES)
def test_every_command_on_a_page_parses(name: str, line: str) -> None:
    """Its name exists, its flags exist, and whole command lines are taken by the parser."""
    words = shlex.split(line)[1:]
    if words == ["--help"]:
        return
    command = meant(words)
    assert command, f"{name}: there is no such command: {line}"
    given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert given <= FLAGS[command] | {"--help", "-h", "--color", "--local"}, f"{name}: {line}"
    rest = words[len(command.split()) :]
    if not rest or "…" in line or "[" in line:
        return
    filled = ["1" if word in ("PLAN", "GENERATION") else word for word in words]
    make().parse_args(filled, print_error=False, exit_on_error=False)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"^make ([a-z]+)", TEXT["README.md"], re.MULTILINE))))
def test_the_readmes_make_targets_exist(target: str) -> None:
    """The two commands of the first screen; make itself reads its file."""
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr


def test_the_readme_opens_with_both_commands() -> None:
    """They stand on the first screen, forty lines."""
    first = "\n".join(TEXT["README.md"].splitlines()[:40])
    assert "\nmake up" in first
    assert "\nmake test" in first


def test_the_region_toml_of_the_pages_is_right(tmp_path: Path) -> None:
    """A [dns] table on a page is taken as it stands, with a region around it; only its key file isn't there."""
    from fencepost.settings import judge

    rest = '\n[pool.web]\nprobe = "http://:80/"\n[pool.web.targets]\na = ["192.0.2.10"]\n'
    rest += '[[endpoint]]\nname = "api.example.com"\npool = "web"\n'
    tried = 0
    for name in NAMES:
        for _, block in BLOCK.findall(TEXT[name]):
            if block.startswith("[dns]\nprovider"):
                tried += 1
                mistakes = judge(f'[region]\nname = "x"\n{block}{rest}', str(tmp_path / "region.toml"), {}).mistakes
                assert all(re.search(r"(tsig\.key|\.token) is missing", each.text) for each in mistakes), name
    assert tried


@pytest.mark.parametrize("module", [effects, events])
def test_every_effect_and_event_is_in_the_theory_of_operation(module: object) -> None:
    """A reader of the page has seen everything that parts can say to each other and to the world."""
    page = TEXT["docs/concepts/theory-of-operation.md"]
    base = effects.Effect if module is effects else events.Event
    found = [
        name
        for name, each in inspect.getmembers(module, inspect.isclass)
        if issubclass(each, base) and each is not base
    ]
    assert len(found) > 10
    assert [name for name in found if f"`{name}`" not in page] == []


def test_every_promise_is_explained() -> None:
    """Each has a row that says what it means and what it doesn't."""
    rows = set(re.findall(r"^\| `(\w+)` \|", TEXT["docs/concepts/promises.md"], re.MULTILINE))
    assert rows == set(ALWAYS) | set(EVENTUALLY)


def test_the_rfc_map_is_whole_and_its_files_exist() -> None:
    """Each RFC that code or tests cite is in it, and each file it names is there and cites what it is named for."""
    page = TEXT["docs/rfc.md"]
    cited: set[str] = set()
    for folder in ("src", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            cited |= set(re.findall(r"RFC (\d+)", path.read_text()))
    assert cited - set(re.findall(r"RFC (\d+)", page)) == set()
    for path in set(re.findall(r"`([\w/]+\.py)`", page)):
        assert (ROOT / "src/fencepost" / path).exists() or (ROOT / "tests" / path).exists(), path


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("docs/")])
def test_files_named_on_a_page_exist(name: str) -> None:
    """A module or test that was renamed is renamed here too."""
    for path in set(re.findall(r"`((?:src|tests|docs|bench|requirements)/[\w./-]+)`", prose(TEXT[name]))):
        assert (ROOT / path).exists(), path


def test_decisions_are_numbered_dated_and_listed() -> None:
    """One decision a record, none missing from the list."""
    records = [name for name in NAMES if re.match(r"docs/decisions/\d", name)]
    for number, name in enumerate(records, 1):
        assert TEXT[name].startswith(f"# {number}. ")
        assert re.search(r"^20\d\d-\d\d-\d\d · \w+", TEXT[name], re.MULTILINE)
        assert f"]({Path(name).name})" in TEXT["docs/decisions/README.md"]
