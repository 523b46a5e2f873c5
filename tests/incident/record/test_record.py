"""A record: its published schema, those that are shipped, what is wrong with a broken one, what is related."""

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.incident.record.checking import leaves, mistakes
from fencepost.incident.record.reading import chosen, library, read_file, read_record, shipped
from fencepost.incident.record.record import Record, document, json_schema, text
from fencepost.incident.record.related import causes, related
from fencepost.incident.record.told import lines, long
from fencepost.ports import Misconfigured, Refused

PUBLISHED = Path(__file__).parents[3] / "docs/operating/incident-record.schema.json"
OCTOBER = "aws-2025-10-19"
RAW = (files("fencepost.incident.record") / "shipped" / f"{OCTOBER}.json").read_bytes()


def record(id_: str = OCTOBER) -> Record:
    """One that is shipped."""
    return next(each.record for each in shipped() if each.record.id == id_)


def test_the_published_schema_is_that_of_the_record() -> None:
    """A reader builds on the file in docs; a key that is gone or of another type is found here."""
    assert json.loads(PUBLISHED.read_text()) == json_schema()


@pytest.mark.parametrize("id_", [each.record.id for each in shipped()])
def test_shipped_records_are_right_and_round_trip(id_: str) -> None:
    """Written out and read again, nothing is lost; each is as the writer writes it, and can be told."""
    whole = record(id_)
    assert mistakes(whole) == []
    written = text(whole)
    assert read_record(written.encode(), "x") == whole
    assert (files("fencepost.incident.record") / "shipped" / f"{id_}.json").read_text() == written
    assert lines(whole)[0].startswith(id_)


def test_every_shipped_record_cites_a_public_account() -> None:
    """Facts of others' incidents come from where one can look them up; what we make of it is called judgement."""
    for each in (found.record for found in shipped()):
        assert any((source.url or "").startswith("https://") for source in each.sources.values())
        kinds = {value for where, value in leaves(document(each)) if where.endswith(".kind")}
        assert kinds <= {"published", "estimate", "judgement"}
        mine = [where for where, value in leaves(document(each)) if where.endswith(".source") and value == "ours"]
        assert all(where.startswith("$.lessons") for where in mine)


def test_short_spans_are_not_none() -> None:
    """8 ms without addresses were told as "0 s"."""
    assert [long(each) for each in (0, 0.008, 1.4, 9420)] == ["0 s", "8 ms", "1 s", "2 h 37 min"]


def test_october_has_the_published_hours() -> None:
    """As AWS's summary has them: 23:48, cause found after 50 min, DNS after 2 h 37 min, whole after 14 h 32 min."""
    october = record()
    assert october.start is not None
    assert october.end is not None
    assert october.root_cause_fixed is not None
    assert (october.start.at, october.end.at) == ("2025-10-19T23:48:00-07:00", "2025-10-20T14:20:00-07:00")
    assert october.root_cause_fixed.at == "2025-10-20T02:25:00-07:00"
    assert [each.begins[11:16] for each in october.timeline.phases] == ["23:48", "00:38", "02:25", "05:28", "10:36"]
    assert [each.at for each in october.timeline.events] == sorted(each.at for each in october.timeline.events)


def test_related_ones_are_found_by_component_and_by_cause() -> None:
    """DynamoDB ten years before shares the component; so do two in which DNS was the way everything broke."""
    found = related(record(), shipped())
    by_component = {each.id: each.words for each in found if each.because == "component"}
    assert by_component["aws-2015-09-20"] == "dynamodb"
    assert by_component["facebook-2021-10-04"] == "dns"
    assert "aws-2020-11-25" not in by_component
    by_cause = {each.id: each.words for each in found if each.because == "cause"}
    assert "overload (contributing here, root cause there)" in by_cause["aws-2021-12-07"]
    assert found[0].because == "named"
    assert OCTOBER not in {each.id for each in found}


def test_being_named_by_another_is_a_relation_too() -> None:
    """A replay's record names what it replays; shown from the other side, it is there."""
    mine = msgspec.structs.replace(record(), related=())
    assert ("aws-2015-09-20", "named") in [(each.id, each.because) for each in related(mine, shipped())]


def test_lists_are_filtered_by_tag_symptom_and_cause() -> None:
    """A root cause and a contributing one both count; a symptom is meant by its name or by words in it."""
    found = shipped()

    def ids(**by: str) -> set[str]:
        return {each.record.id for each in chosen(found, by.get("tag"), by.get("symptom"), by.get("cause"))}

    assert ids(tag="bgp") == {"facebook-2021-10-04"}
    assert ids(symptom="monitoring-blind") == {"aws-2020-11-25", "aws-2021-12-07"}
    assert ids(symptom="no address, over") == {OCTOBER}
    assert ids(cause="stale-write") == {OCTOBER}
    assert ids(cause="overload", tag="retry-storm") == {"aws-2015-09-20", "aws-2021-12-07"}
    assert all(each.record.id in ids(cause=next(iter(causes(each.record))).value) for each in found)
    with pytest.raises(Refused, match="none of") as refused:
        ids(cause="overlod")
    assert "overload" in refused.value.hint


def broken(change: Callable[[Any], object]) -> bytes:
    """October's record with something changed."""
    plain = json.loads(RAW)
    change(plain)
    return json.dumps(plain).encode()


@pytest.mark.parametrize(
    ("change", "what", "place"),
    [
        (lambda p: p["timeline"]["phases"][2].update(ends="2025-10-20T01:00:00-07:00"), "ends before",
         "$.timeline.phases[2].ends"),
        (lambda p: p["timeline"]["events"][3].update(at="02:25"), "is no time like", "$.timeline.events[3].at"),
        (lambda p: p["timeline"]["events"][3].update(at="2025-02-30T02:25:00Z"), "is no time",
         "$.timeline.events[3].at"),
        (lambda p: p["timeline"]["events"][0].update(phase="endpoint-gon"), 'did you mean "endpoint-gone"',
         "$.timeline.events[0].phase"),
        (lambda p: p["lessons"][0].update(source="our"), 'did you mean "ours"', "$.lessons[0].source"),
        (lambda p: p["root_cause"].update(category="stale"), "stale", "$.root_cause.category"),
        (lambda p: p["impact"][0].update(depends=[]), 'did you mean "depends_on"', "$.impact[0]"),
        (lambda p: p.update(id="October 2025"), "is no name", "$.id"),
        (lambda p: p.update(schema="fencepost.incident/2"), "this release reads", "$.schema"),
        (lambda p: p.pop("sources"), "sources", "$"),
        (lambda p: p.update(title="\ud800"), "lone surrogate", "$.title"),
        (lambda p: p["impact"][0].update(service=7), "Expected `str`", "$.impact[0].service"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_of_with_file_and_place(change: Callable[[Any], object], what: str, place: str) -> None:
    """A person who wrote it by hand finds it at once."""
    with pytest.raises(Misconfigured) as refused:
        read_record(broken(change), "mine.json")
    assert what in refused.value.what
    assert refused.value.where == f"mine.json: {place}"


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        (b'{\n "schema": ]', "mine.json: line 2, column 12"),
        (b'{"id": "a", "id": "b"}', "mine.json"),
        (b"\xff\xfe", "mine.json: byte 0"),
        (b"[" * 200_000, "mine.json"),
        (b"null", "mine.json: $"),
        (b"", "mine.json: line 1, column 1"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "mine.json"),
    ],
    ids=["syntax", "twice", "not UTF-8", "deep", "null", "empty", "digits"],
)
def test_what_is_no_record_at_all_is_told_of(raw: bytes, where: str) -> None:
    """Broken JSON has a line and a column."""
    with pytest.raises(Misconfigured) as refused:
        read_record(raw, "mine.json")
    assert refused.value.where == where
    assert "sys." not in refused.value.what


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def places(value: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [where, *(place for key in keys for place in places(value[key], (*where, key)))]


PLACES = places(json.loads(RAW))[1:]


def read(raw: bytes) -> Record | Misconfigured:
    """The record in these bytes, or what is wrong with them."""
    try:
        return read_record(raw, "mine.json")
    except Misconfigured as error:
        return error


@given(st.sampled_from(PLACES), VALUES)
def test_whatever_stands_somewhere_is_right_or_refused(place: tuple[Any, ...], value: object) -> None:
    """Never a traceback: any value at any place gives a record that can be told, or an error that names the file."""

    def change(plain: Any) -> None:
        for key in place[:-1]:
            plain = plain[key]
        plain[place[-1]] = value

    found = read(broken(change))
    if isinstance(found, Misconfigured):
        assert found.where.startswith("mine.json")
    else:
        assert lines(found)
        assert isinstance(related(found, shipped()), tuple)


@given(st.binary(max_size=60), st.integers(0, len(RAW)), st.integers(0, 40))
def test_whatever_bytes_stand_in_it_they_are_read_or_refused(junk: bytes, at: int, over: int) -> None:
    """A file half written, or spoilt on the way."""
    found = read(RAW[:at] + junk + RAW[at + over :])
    assert isinstance(found, Record) or found.where.startswith("mine.json")


def test_a_bad_record_hides_none_of_the_others(tmp_path: Path) -> None:
    """Those of a folder beside those shipped; an id that is taken, and a file that is none, are told of."""
    (tmp_path / "a.json").write_bytes(broken(lambda p: p.update(id="mine")))
    (tmp_path / "b.json").write_text("{")
    (tmp_path / "c.json").write_bytes(RAW)
    (tmp_path / "d.json").mkdir()
    (tmp_path / "notes.txt").write_text("not looked at")
    found = library(tmp_path)
    assert {each.record.id for each in found.found} == {"mine", *(each.record.id for each in shipped())}
    assert [Path(each.where.partition(":")[0]).name for each in found.errors] == ["b.json", "c.json", "d.json"]
    assert found.get("mine").where.endswith("a.json")
    with pytest.raises(Refused) as refused:
        found.get("mime")
    assert refused.value.hint.endswith("show mine")


def test_a_folder_that_is_not_there_adds_nothing(tmp_path: Path) -> None:
    """Most regions have none."""
    assert library(tmp_path / "incidents").found == library(None).found
    with pytest.raises(Misconfigured, match="no such file"):
        read_file(tmp_path / "x.json")
