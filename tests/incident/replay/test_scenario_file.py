"""Reading a scenario: all mistakes at once, each with its line and the nearest right word, and never a traceback."""

import re
from pathlib import Path

import numpy as np
import pytest
from called import call
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct, structs

from fencepost.incident.replay.guards import Guard
from fencepost.incident.replay.operators import DEEDS
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.quantities import QUANTITIES
from fencepost.incident.replay.run import replay
from fencepost.incident.replay.scenario import Cause, Scenario
from fencepost.incident.replay.scenario_file import SHIPPED, find_scenario, read_scenario, set_values, shipped
from fencepost.incident.replay.scenario_needs import disordered, needs
from fencepost.incident.replay.scenario_rules import PARTS
from fencepost.incident.replay.scenario_shape import LISTS, RawDown, RawRule, RawValue
from fencepost.ports import Misconfigured
from fencepost.settings.mistakes import SettingsError

TEXTS = {name: shipped(name) for name in SHIPPED}
AWAY = TEXTS["database-away"]


def mistakes(text: str) -> list[str]:
    """What is wrong, as "line: words"."""
    with pytest.raises(SettingsError) as caught:
        read_scenario(text, "own.toml")
    return [f"{each.line}: {each.text}" for each in caught.value.mistakes]


def line_of(text: str, part: str) -> int:
    """The first line with this in it."""
    return text[: text.index(part)].count("\n") + 1


def changed(old: str, new: str, text: str = AWAY) -> tuple[str, int]:
    """A shipped file with one thing changed, and in which line."""
    assert old in text
    return text.replace(old, new, 1), line_of(text, old)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema =", "schemer =", 'did you mean "schema"?'),
        ('"fencepost.scenario/1"', '"fencepost.scenario/9"', 'this release reads "fencepost.scenario/1"'),
        ('"store-away"', '"store-awry"', 'did you mean "store-away"?'),
        ("summary =", "sumary =", 'did you mean "summary"?'),
        ('"2026-03-03T10:00:00+00:00"', '"2026-03-03T10:00:00"', "no offset"),
        ('"2026-03-03T10:00:00+00:00"', '"yesterday"', "no time like"),
        ('"2026-03-03T10:00:00+00:00"', '"9999-12-31T23:00:00+00:00"', "no time like"),
        ('lasts   = "14h"', 'lasts   = "14"', "no duration"),
        ('lasts   = "14h"', 'lasts   = "99d"', "ten minutes to seven days"),
        ('title   = "The database away"', 'title   = "a\\u001b[31mb"', "control characters"),
        ("[values.workers]", "[values.worker]", 'did you mean "workers"?'),
        ("[values.outage]", "[values.probe]", "of another cause than store-away"),
        ("pooled_life ", "pool_life ", 'did you mean "pooled_life"?'),
        ('value = "30s", kind', 'value = "30 sec", kind', "no number, duration"),
        ('value = "30s", kind', 'value = "30/s", kind', "is in per second; it is to be in seconds"),
        ('value = "30s", kind', "value = true, kind", "write a number, or a text with its unit"),
        ('value = "30s", kind', 'value = "9000d", kind', "longer than a year"),
        ("value = 400,", "value = inf,", "no number from 0"),
        ("value = 400,", "value = 0,", "less than 1"),
        ("value = 400,", f"value = 1{'0' * 400},", "many digits"),
        ("value = 500,", "value = 2.5,", "no whole number"),
        ('value = "99%"', 'value = "101%"', "over 100%"),
        ('source = "made" }', 'source = "mad" }', 'did you mean "made"?'),
        ('kind = "estimate"', 'kind = "estimated"', 'did you mean "estimate"?'),
        ('does   = "restore-store"', 'does   = "restor-store"', 'did you mean "restore-store"?'),
        ('when   = { at = "13:00" }', 'when   = { at = "25:00" }', 'no hour like "04:14"'),
        ('when   = { at = "13:00" }', "when   = { at = 13:00:00 }", "write a text in quotes"),
        ('when   = { at = "13:00" }', "when   = {}", "gives none of at, follows and seen"),
        ('when   = { at = "13:00" }', 'when   = { at = "13:00", lasting = "5m" }', 'says something of "seen" only'),
        ('when   = { at = "13:00" }', 'when   = { at = "13:00", afer = "5m" }', 'did you mean "after"?'),
        ('when   = { at = "13:00" }', 'when   = { at = "10:30" }', "back before it is away"),
        ('follows = "store-back"', 'follows = "store-bak"', 'did you mean "store-back"?'),
        ("leases_missing > 1%", "lease_missing > 1%", 'did you mean "leases_missing"?'),
        ("leases_missing > 1%", "leases_missing is 1%", 'isn\'t like "leases_missing > 1%"'),
        ("leases_missing > 1%", "leases_missing > 1.2.3", "no number"),
        ('lasting = "30m"', 'lasting = "30"', "no duration"),
        ("backdated = true", 'backdated = "yes"', "write true or false"),
        ('begins = "leases-back"', 'begins = "leases-bak"', 'did you mean "leases-back"?'),
        ('depends_on = ["store", "leases"', 'depends_on = ["storm", "leases"', 'did you mean "store"?'),
        ('depends_on = ["store"]', 'depends_on = "store"', "write a list of texts"),
        ('name   = "leases-breaking"', 'name   = "store-away"', "the name of another"),
        ('words  = "more than 1 %', 'word   = "more than 1 %', 'did you mean "words"?'),
        ('trouble = "leases-breaking"', 'trouble = "leases-braking"', 'did you mean "leases-breaking"?'),
        ("[[phase]]", "[[fase]]", 'did you mean "phase"?'),
        ("[[act]]", "[act]", ""),
        ('value = "11:00"', 'value = "24:00"', 'is no hour like "04:14"'),
        ('value = "11:00"', 'value = "noon"', 'is no hour like "04:14"'),
        ('value = "11:00"', 'value = "30s"', 'it is to be an hour like "04:14"'),
        ('zone    = "UTC"', 'zone    = ""', "zone is empty"),
        ('zone    = "UTC"', 'zone    = "<b>"', "what the offset of begins is called"),
        ('zone    = "UTC"', f'zone    = "{"x" * 500}"', "has 500 characters; outputs have room for 20"),
        ('name    = "database-away"', 'name    = "../../away"', "letters, digits and hyphens"),
        ('title   = "The database away"', 'title   = "  "', "title is empty"),
        (
            'when   = { at = "13:00" }',
            'when   = { follows = "store-back" }',
            "store-back → store-back; give one of them",
        ),
        ('when   = { at = "13:00" }', 'when   = { at = "+1d 13:00" }', "comes after the scenario's end"),
        ('seen = "leases_missing > 1%"', 'seen = "leases_missing > 1%", since = "leases-back"', "wait for each other"),
        ('depends_on = ["store"]', 'depends_on = ["control"]', "control → control; leave one of them out"),
        ('ends   = "leases-back"\ntrouble', 'ends   = "store-back"\ntrouble', "ends with what it begins with"),
        ('value = "11:00"', 'value = "10:05"', "let a usual day come first"),
        ('value = "11:00"', 'value = "09:00"', "outage.begins is after the scenario's end"),
        ("value = 800,", "value = 8,", "workers.pool is less than workers.knee"),
        ('patience       = { value = "120s"', 'patience       = { value = "5s"', "ever be answered in time"),
        ('name   = "leases-breaking"', 'within = "5m"\nname   = "leases-breaking"', 'near to "reported"'),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_nearest_right_word(old: str, new: str, said: str) -> None:
    """One thing wrong in a file that is right otherwise."""
    text, line = changed(old, new)
    found = mistakes(text)
    assert any(said in each for each in found), found
    if said and "[act]" not in new:
        near = [int(each.partition(":")[0]) for each in found if said in each]
        assert line in near, (line, found)


def test_what_only_october_can_get_wrong() -> None:
    """A zone that contradicts the offset, an interval that ends before it begins, a circle of acts and services."""
    october = TEXTS["aws-2025-10-19"]
    text, line = changed('zone    = "PDT"', 'zone    = "UTC"', october)
    assert mistakes(text) == [f'{line}: zone is "UTC", but begins has the offset "-07:00": change one of them']
    text, line = changed('[["23:48", "13:50"]]', '[["14:48", "13:50"]]', october)
    assert mistakes(text)[0].startswith(f"{line}: ")
    assert '"+1d 04:05"' in mistakes(text)[0]
    text, line = changed(
        'when     = { at = "00:38", only_if = "dns_empty > 0" }', 'when     = { follows = "whole" }', october
    )
    text, _ = changed(
        'follows = "launches-normal", after = "30m" }\nreported', 'follows = "cause-found" }\nreported', text
    )
    assert "cause-found → whole → cause-found" in mistakes(text)[0]
    text, _ = changed('depends_on = ["store", "leases", "network"]', 'depends_on = ["containers"]', october)
    assert "launches → containers → launches" in mistakes(text)[0]
    assert len(mistakes(text)) == 1


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("which", ["least", "most"])
def test_at_the_bounds_of_every_value_a_replay_still_comes_to_an_end(name: str, which: str) -> None:
    """Each value at its bound, all others as shipped: a mistake beside another one, or replayed; never broken."""
    scenario = find_scenario(name)
    wanted = needs(scenario.cause)
    sections = wanted if name == "database-away" else {key: wanted[key] for key in ("dns", "probe") if key in wanted}
    for section, keys in sections.items():
        for key, need in keys.items():
            amount = min(getattr(need, which), 366 * 86_400.0)
            value = structs.replace(scenario.values[f"{section}.{key}"], amount=float(amount))
            values = scenario.values | {f"{section}.{key}": value}
            if disordered(values) or (section == "dns" and key == "endpoints"):
                continue
            short = structs.replace(scenario, values=values, lasts_s=3 * 3600)
            outcome = replay(short, Options(hosts=100, guards=frozenset({Guard.ADMISSION})))
            assert all(np.isfinite(series).all() for series in outcome.series.values()), (section, key)


def test_all_mistakes_of_a_file_are_told_at_once_in_the_order_of_their_lines() -> None:
    """Nobody has to run it once for each."""
    text, first = changed('cause   = "store-away"', 'cause   = "store-awry"')
    text, second = changed("pooled_life ", "pool_life ", text)
    text, third = changed('follows = "store-back"', 'follows = "store-bak"', text)
    text, fourth = changed("backdated = true", "backdated = 1", text)
    lines = [int(each.partition(":")[0]) for each in mistakes(text)]
    assert lines == sorted(lines)
    assert {first, second, third, fourth} <= set(lines)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('title   = "The database away"', "title   = 5"),
        ("summary = ", "sumary = "),
        ('words  = "the database answers again"', "words  = 5"),
        ('words  = "more than 1 %', 'word   = "more than 1 %'),
    ],
)
def test_a_mistake_hides_no_other_in_the_same_table(old: str, new: str) -> None:
    """An hour "25:99" was told only once the title was mended: a table with a mistake was read no further."""
    text, _ = changed(old, new)
    known = set(mistakes(text))
    for right, wrong, said in (
        ('value = "11:00"', 'value = "25:99"', 'is no hour like "04:14"'),
        ('at = "13:00"', 'at = "25:99"', 'is no hour like "04:14"'),
        ('lasting = "30m"', 'lasting = "30"', "no duration"),
        ('lasts   = "14h"', 'lasts   = "99d"', "ten minutes to seven days"),
    ):
        both, line = changed(right, wrong, text)
        (more,) = set(mistakes(both)) - known
        assert more.startswith(f"{line}: ")
        assert said in more
        assert known < set(mistakes(both))


def test_a_mistake_makes_no_others() -> None:
    """A name is known though its own table has a mistake."""
    text, _ = changed('words  = "the database answers again"', "words  = 5")
    assert len(mistakes(text)) == 1


def test_broken_syntax_and_what_is_no_scenario_at_all_are_told_too() -> None:
    """The line of the parser; a file with nothing in it; one that is deep."""
    text, line = changed('lasts   = "14h"', 'lasts   = "14h')
    assert mistakes(text)[0].startswith(f"{line}: ")
    assert any('no "scenario"' in each for each in mistakes(""))
    assert "deep" in mistakes("a = " + "[" * 5000)[0]
    many = AWAY + "".join(f"nothing{number} = 1\n" for number in range(3000))
    assert len(mistakes(many)) == 1000
    assert len(mistakes("values = 5\nsources = 5\nact = 5\nscenario = 5")) == 5


@pytest.mark.parametrize(
    "key", [".".join("a" * 50_000) + "=1", "[" + ".".join("a" * 50_000) + "]", "'a'.\"b\"." * 20_000 + "a=1"]
)
def test_a_key_of_thousands_of_parts_is_refused_before_it_is_parsed(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in region.toml: the parser's memory grows with the square of them, gigabytes for 100 kB of text."""
    monkeypatch.setattr("tomllib.loads", None)
    assert mistakes(f"\n{key}") == ["2: tables or lists stand more than 64 deep in one another"]


def test_the_parsers_words_about_itself_are_not_told() -> None:
    """Python's advice about its limit of digits is for programmers; its recursion, over many lines, is depth."""
    assert mistakes("schema=" + "9" * 10_000) == ["1: a number has too many digits"]
    assert "deep" in mistakes("a = " + "[\n" * 5000)[0]


def test_every_value_that_is_needed_is_missed_by_name() -> None:
    """Each line of values taken out in turn."""
    rows = [line for line in AWAY.splitlines() if " = { value =" in line]
    wanted = needs(read_scenario(AWAY, "x").cause)
    assert len(rows) == sum(map(len, wanted.values()))
    for row in rows:
        key = row.split("=")[0].strip()
        assert any(f'has no "{key}"' in each for each in mistakes(AWAY.replace(row + "\n", "", 1)))


def read(text: str) -> Scenario | None:
    """The scenario, or None for mistakes that all have a line of the file."""
    try:
        return read_scenario(text, "own.toml")
    except SettingsError as error:
        told = error.mistakes
    assert told
    last = text.count("\n") + 2
    assert all(0 < each.line <= last and each.text for each in told)
    assert all(each.text.isprintable() for each in told)
    return None


WORDS = st.sampled_from(
    ["", "5", "-1", "nan", "true", '"x"', '"5s"', '"90%"', "[]", "[[]]", "{}", "{ at = 1 }", "[1]", '[["a"]]',
     "2026-01-01", "10:00:00", '"10:00"', "1e999", "9" * 40, '"\\u0000"', '"a > 1"', "[[act]]", "[values]", "="]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SHIPPED), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), WORDS), max_size=4))
def test_whatever_is_changed_it_reads_or_is_told(name: str, changes: list[tuple[int, int, str]]) -> None:
    """Lines gone, twice, with another value, or with something behind."""
    lines = TEXTS[name].splitlines()
    for place, how, word in changes:
        at = place % len(lines)
        key, equals, _ = lines[at].partition("=")
        instead = [[], [lines[at]] * 2, [f"{key}{equals} {word}"], [lines[at], word]][how]
        lines[at : at + 1] = instead
    read("\n".join(lines))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60) | st.text("[]{}=.\"'\n #a1", max_size=60))
def test_whatever_stands_in_a_file_it_is_told(text: str) -> None:
    """No text that is no scenario ends in a traceback."""
    assert read(text) is None


KEYS = sorted(find_scenario("database-away").values)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(KEYS) | st.text(max_size=12), st.text(max_size=12) | st.from_regex(r"\A[0-9.]{1,9}(s|m|%|/s)?\Z")
)
def test_whatever_is_set_it_is_taken_or_told(key: str, text: str) -> None:
    """A key that there is not, a number that it can't be."""
    try:
        taken = set_values(find_scenario("database-away"), {key: text})
        said = taken.values[key].source
    except Misconfigured as error:
        said = f"{error.what} {error.hint}"
    assert len(said) > 3
    assert said.isprintable()


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_what_reads_also_runs(data: st.DataObject) -> None:
    """At the bounds of what is accepted."""
    name = data.draw(st.sampled_from(SHIPPED[1:]))
    scenario = structs.replace(find_scenario(name), lasts_s=6000)
    wanted = needs(scenario.cause)
    values = dict(scenario.values)
    for key in data.draw(st.lists(st.sampled_from(sorted(values)), max_size=5)):
        section, _, short = key.partition(".")
        need = wanted[section][short]
        if need.unit != "hour":
            bound = data.draw(st.sampled_from((need.least, min(need.most, 1000.0))))
            values[key] = structs.replace(values[key], amount=bound)
    outcome = replay(structs.replace(scenario, values=values), Options(hosts=100))
    assert len(outcome.times) == 500


def test_the_command_tells_all_mistakes_and_runs_nothing(tmp_path: Path) -> None:
    """Exit 2, a line each as compilers write them; and slips on the command line."""
    text, first = changed('cause   = "store-away"', 'cause   = "store-awry"')
    text, second = changed("backdated = true", "backdated = 1", text)
    own = tmp_path / "own.toml"
    own.write_text(text)
    told = call("replay", str(own))
    assert (told.returncode, told.stdout) == (2, "")
    assert re.search(rf"own\.toml:{first}: cause is", told.stderr)
    assert re.search(rf"own\.toml:{second}: backdated is", told.stderr)
    assert "Traceback" not in told.stderr
    own.write_text(AWAY)
    assert call("replay", str(own), "--hosts", "200", "--json").returncode == 0
    slip = call("replay", "--set", "guards.grac=1h")
    assert (slip.returncode, 'did you mean "guards.grace"' in slip.stderr) == (2, True)
    unit = call("replay", "--set", "guards.grace=5%")
    assert (unit.returncode, "it is to be in seconds" in unit.stderr) == (2, True)
    for name, said in (
        ("database-awry", "database-away"),
        (str(tmp_path), "can't read it"),
        ("no.toml", "No such file"),
    ):
        gone = call("replay", name)
        assert (gone.returncode, said in gone.stderr) == (2, True), gone.stderr


def test_the_format_s_document_names_everything_that_a_file_may_hold() -> None:
    """Quantities, deeds, sections, causes, and the keys of each table."""
    document = (Path(__file__).parents[3] / "docs/operating/replay-scenarios.md").read_text()
    sections = {section for cause in Cause for section in needs(cause)}
    shapes: list[type[Struct]] = [*LISTS.values(), RawRule, RawValue, RawDown]
    keys = {field.name for shape in shapes for field in structs.fields(shape)}
    for word in (*QUANTITIES, *DEEDS, *PARTS, *sections, *keys, *SHIPPED):
        assert f"`{word}`" in document or f"`{word} =" in document, word
    for cause in Cause:
        assert f'"{cause.value}"' in document
