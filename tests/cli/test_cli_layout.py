"""What is laid out for a terminal: made for 80 columns, readable at 60 and 40, one line a thing in a pipe."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fencepost.cli.history import event, what
from fencepost.cli.layout import ENDLESS, cells, cropped, fitted, table
from fencepost.cli.prove import race_lines
from fencepost.cli.screen import override_lines, problem_lines, status_lines
from fencepost.cli.terminal import say, styled
from fencepost.cli.up_screen import panel
from fencepost.ports import HistoryRow
from fencepost.proving.races import Race
from fencepost.roles.status.compose import compose
from fencepost.roles.status.document import CheckerStatus, OverrideStatus, PoolStatus, Problem, RoleStatus, Status
from fencepost.roles.status.facts import Facts
from fencepost.settings import load

REGION = load(Path(__file__).parents[2] / "src/fencepost/dev/sample.toml", {})
WORDS = st.lists(st.text("ab(\x1b[1m0m", min_size=1, max_size=9).filter(lambda text: "\x1b" not in text), min_size=1)


def busy() -> Status:
    """The sample, with much to say."""
    status = compose(Facts(REGION, 1, "api"))
    pool = PoolStatus("web", 6, 3, 1, 2, 1, 0, None, True, 2, 3, 0.3, 140.0, max_out_targets=2)
    endpoints = tuple(
        structs.replace(each, generation=12, addresses=("127.0.1.1",) * 5, written_by="enactor/b")
        for each in status.endpoints
    )
    roles = tuple(
        RoleStatus(f"{kind}/{zone}", "up", 12345, 0, "0.1.0", 0.1, None)
        for zone in "abc"
        for kind in ("enactor", "checker")
    )
    problem = Problem(
        "kept-dead",
        "refused",
        "127.0.2.1",
        "dead, kept: max_out is reached, and until one is back it stays where it is, or until you say that it must",
        "fencepost drain 127.0.2.1 --for 1h --reason 'it is dead and others wait for their turn'",
        True,
        "2025-10-20T07:48:00Z",
    )
    return structs.replace(
        status,
        pools=(pool,),
        endpoints=endpoints,
        roles=roles,
        checkers=tuple(CheckerStatus(zone, "web", "trusted") for zone in "abc"),
        problems=(problem,),
        fenced=3,
        restarts=12,
    )


def kept_open(address: str, since: str, *, stay: str = "") -> Problem:
    """A dead target that fail open keeps."""
    line = f"fencepost drain {address} --for 1h{stay}"
    what = "dead, kept: fail open, 4 of 6 look dead at once"
    return Problem("kept-by-fail-open", "refused", address, what, line, False, since)


def test_what_fail_open_keeps_is_told_once() -> None:
    """Forty dead targets, one line and one hint; those of which another thing is to be said have their own."""
    many = [kept_open(f"192.0.2.{n}", f"2025-10-20T07:48:{n:02}Z") for n in range(10, 50)]
    apart = kept_open("198.51.100.1", "2025-10-20T07:48:00Z", stay=" --confirm db")
    (first,) = busy().problems
    lines = problem_lines(structs.replace(busy(), problems=(*many, apart, first)))
    assert len(lines) == 6
    assert "192.0.2.10, 192.0.2.11, 192.0.2.12, 192.0.2.13 and 36 more: dead, kept: fail open" in lines[2]
    assert "(since 2025-10-20 07:48:10 UTC)" in lines[2]
    assert lines[3] == "   try      fencepost drain ADDRESS --for 1h    for each that is dead indeed"
    assert lines[5] == "   try      fencepost drain 198.51.100.1 --for 1h --confirm db"
    one = problem_lines(structs.replace(busy(), problems=(many[0],)))
    assert one[1] == "   try      fencepost drain 192.0.2.10 --for 1h"


def test_a_word_on_an_address_of_two_pools_is_one_row() -> None:
    """It stood twice under PLACED BY PERSONS, with nothing to tell one from the other."""
    word = OverrideStatus("drain", "127.0.1.2", "ada", "disk", "2025-10-20T09:00:00Z")
    twice = structs.replace(busy(), overrides=(structs.replace(word, id="1"), structs.replace(word, id="2")))
    assert len(override_lines(twice)) == 1


def test_the_cause_is_told_before_what_follows_from_it() -> None:
    """With a wrong key `up` showed two foreign markers and no key: it stood sixth, and its panel has room for two.

    Each problem names what to do (docs/operating/problems.md); of many the first is what people do.
    """
    foreign = [Problem("foreign-record", "refused", f"{n}.test", "its owner is 'x'", "", True, None) for n in range(5)]
    key = Problem("provider-refuses", "misconfigured", "192.0.2.53:53", "TSIG BADSIG", "", True, None)
    empty = Problem("empty-now", "unavailable", "z.test", "answers nothing", "", True, None)
    said = problem_lines(structs.replace(busy(), problems=(*foreign, empty, key)))
    assert ["z.test" in said[0], "BADSIG" in said[1], "0.test" in said[2]] == [True] * 3
    status = structs.replace(busy(), problems=(*foreign, key))
    shown = [row for row in panel(REGION, status, {}, 0.0, (80, 40)) if "attention" in row or "more" in row]
    assert ["BADSIG" in shown[0], "0.test" in shown[1]] == [True, True]
    assert shown[2:] == [" 4 more for a person: fencepost status"]


@pytest.mark.parametrize("columns", [60, 80])
def test_a_providers_long_refusal_wraps_under_its_beginning(columns: int) -> None:
    """Route 53 names each record of a refused batch, in one line of hundreds of characters."""
    one = "Tried to create resource record set [name='fencepost-prove-1.example.com.', type='A'] but it already exists"
    race = Race("stale create", "two writers saw nothing, both create", True, f"[{', '.join([one] * 4)}]\n", "")
    lines = [row for line in race_lines(race)[1:] for row in fitted(line, columns)]
    assert len(lines) > 6
    assert all(cells(row) <= columns and row.startswith(" " * 11) and row[11] != " " for row in lines)
    assert " ".join(row.strip() for row in lines) == f"[{', '.join([one] * 4)}]"


def rows(status: Status, columns: int) -> list[str]:
    """The lines of status as a terminal shows them."""
    return [row for line in status_lines(status, 1, columns) for row in fitted(line, columns)]


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_status_fits_the_terminal(columns: int) -> None:
    """At 80 columns its head broke in "restar|ts 0"; only a line to paste is left to the terminal to break."""
    found = rows(busy(), columns)
    assert [row for row in found if cells(row) > columns and not row.startswith("   try ")] == []
    whole = " ".join(" ".join(found).split())
    for text in ("fenced 3 · restarts 12", "budget 0.3, next in 2 min 20 s", "api.example.test", "5 of 6", "ok"):
        assert text in whole
    assert columns != 80 or "enactor b" in whole, "who wrote is the first to go, and not here"


def test_in_a_pipe_one_line_is_one_thing() -> None:
    """grep finds a problem whole."""
    found = rows(busy(), ENDLESS)
    assert (
        sum("dead, kept" in row and row.endswith("that it must (since 2025-10-20 07:48:00 UTC)") for row in found) == 1
    )


def test_since_when_reads_after_any_text() -> None:
    """It once read "or until you say that it must since 00:56:57"."""
    assert "it must (since " in " ".join(problem_lines(busy(), 200))


def test_the_rest_of_a_row_hangs_under_its_last_column() -> None:
    """A table still reads as one."""
    line = " b     ok       ok (pid 1565)  127.0.2.1 (30859)  127.0.2.2 (30864)"
    assert fitted(line, 60) == [
        " b     ok       ok (pid 1565)  127.0.2.1 (30859)",
        "                               127.0.2.2 (30864)",
    ]
    assert fitted("some words that are no table", 26) == ["some words that are no", "  table"]
    assert fitted("It then follows the hold's end:  fencepost resume api.example.test", 40) == [
        "It then follows the hold's end:",
        "  fencepost resume api.example.test",
    ]
    assert fitted("  try      fencepost drain 127.0.2.1", 20) == ["  try      fencepost drain 127.0.2.1"]


@given(WORDS, st.integers(26, 60), st.integers(0, 50))
def test_wrapping_loses_no_word_and_breaks_none(words: list[str], columns: int, hang: int) -> None:
    """Whatever the text: the same words in the same order, none of them in two, no row too wide that could be less."""
    found = fitted(" ".join(words), columns, hang)
    assert " ".join(found).split() == words
    assert all(cells(row) <= columns or len(row.split()) == 1 for row in found)


def test_what_others_wrote_moves_no_cursor(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A saved plan, a zone file, a provider's refusal: whatever they hold, what is shown clears no screen."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    say(f"{styled('error:', 'red')} region \x1b[2J\x1b]0;title\x07x\r\u202ey \ud800")
    assert (
        capsys.readouterr().out == "\x1b[1;31merror:\x1b[0m region \ufffd[2J\ufffd]0;title\ufffdx\ufffd\ufffdy \ufffd\n"
    )


def test_styles_and_wide_letters_are_measured_as_they_show() -> None:
    """A style takes no column, a Chinese letter two."""
    assert cells("\x1b[1mab\x1b[0m") == 2
    assert cells("東京") == 4
    assert cropped("\x1b[1mabcdef\x1b[0m", 3) == "\x1b[1mabc\x1b[0m"


def test_a_table_lines_up() -> None:
    """Columns are as wide as their widest cell; lines don't end in spaces."""
    assert table([("a", "bb", "c"), ("aaa", "b", "")]) == [" a    bb  c", " aaa  b"]


def test_a_table_drops_what_is_least_needed_and_no_more() -> None:
    """In the order it is given, until it fits."""
    found = [("NAME", "N", "BY"), ("api.example.test", "12", "enactor b")]
    assert table(found, columns=31, drop=(2, 1), right=(1,)) == [" NAME               N", " api.example.test  12"]
    assert table(found, columns=20, drop=(2, 1)) == [" NAME", " api.example.test"]
    assert table(found, drop=(2, 1))[1].endswith("enactor b")


def test_an_epoch_is_said_once() -> None:
    """`1 (epoch 1796000059) -> 2 (epoch 1796000059)` filled a line; where it changes, both are said."""

    def said(text: str) -> str:
        return what(HistoryRow("enacted", "api", "enactor/b", text, 1), "api")

    assert said("1 (epoch 9) -> 2 (epoch 9) in 3 ms") == "wrote gen 2 (epoch 9), over gen 1, in 3 ms"
    assert said("1 (epoch 8) -> 2 (epoch 9) in 3 ms") == "wrote gen 2 (epoch 9), over gen 1 (epoch 8), in 3 ms"
    assert said("1 -> 2 in 3 ms") == "wrote gen 2, over gen 1, in 3 ms"


def test_an_event_is_one_line_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    """`history | grep` once found half of a row."""
    assert "\n" not in event("00:00:01.000  enactor b  ", "word " * 60)


def test_what_is_to_be_pasted_stays_whole_and_what_it_does_goes_beneath_it() -> None:
    """ "Made for a terminal of 80 columns" (docs/operating/commands.md): `doctor`'s hint of `prove` took 116."""
    hint = (
        "                    try  fencepost prove    races writers at a scratch name, and so shows what may be written"
    )
    assert fitted(hint, 80) == [
        "                    try  fencepost prove",
        "                         races writers at a scratch name, and so shows what may",
        "                         be written",
    ]
    long = f"  try      fencepost up --config /srv/{'x' * 80}/region.toml"
    assert fitted(long, 80) == [long]
    assert fitted(hint, ENDLESS) == [hint]
