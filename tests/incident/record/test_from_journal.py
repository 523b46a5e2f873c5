"""A record from a region's history: troubles with their spells, a person's acts, and what can't be known."""

import msgspec
import pytest
from histories import API, NOON, REGION, SECOND, bad_noon, row
from hypothesis import given
from hypothesis import strategies as st

from fencepost.incident.record.checking import mistakes
from fencepost.incident.record.from_journal import from_journal
from fencepost.incident.record.reading import read_record
from fencepost.incident.record.record import text
from fencepost.incident.record.stretches import MOST, stretches
from fencepost.incident.record.troubles import What, at_most, troubles
from fencepost.ports import HistoryRow, Refused

NOW = NOON + 3600 * SECOND


def test_phases_begin_and_end_with_troubles() -> None:
    """A kind of trouble that comes up or goes begins a new phase; well again, there is none."""
    made = from_journal(bad_noon(), REGION, NOW)
    assert [(each.name, each.begins[11:19], (each.ends or "")[11:19]) for each in made.timeline.phases] == [
        ("targets-out", "12:00:01", "12:00:20"),
        ("targets-out-dead-kept", "12:00:20", "12:00:40"),
        ("emptied-targets-out-dead-kept", "12:00:40", "12:00:42"),
        ("targets-out-dead-kept-2", "12:00:42", "12:01:01"),
        ("targets-out-2", "12:01:01", "12:02:40"),
    ]
    assert made.start is not None
    assert made.end is not None
    assert (made.start.at, made.end.at) == ("2026-11-30T12:00:01.000Z", "2026-11-30T12:02:40.000Z")


def test_a_record_says_what_happened_to_whom_and_what_was_done() -> None:
    """Fenced, removed, kept and healed are in the timeline, the drain among what was done, a plan nowhere."""
    made = from_journal(bad_noon(), REGION, NOW)
    assert {each.name for each in made.symptoms} == {
        "endpoint-emptied",
        "target-removed",
        "target-kept",
        "write-fenced",
    }
    api, www = made.impact
    assert (api.service, api.depends_on) == (API, ("pool web", "dns"))
    assert [(each.begins or "")[11:19] for each in api.down] == ["12:00:40"]
    assert www.down == ()
    assert www.words == "never seen empty; at most 2 targets of pool web out at once; 1 dead one still answered"
    assert [(each.by, each.words) for each in made.mitigations] == [("ada", "127.0.1.1 drain; reason: disk swap")]
    assert any("operator: 127.0.1.1 drain" in each.words for each in made.timeline.events)
    assert not any("plan 8" in each.words for each in made.timeline.events)
    assert made.components == ("dns", "dns-embedded", "health-checks", "load-balancers")
    how = {each.what.partition(" ")[0]: each.how for each in made.detection}
    assert how["web:"] == "health checking", "checkers' votes found it, whatever role wrote the line"
    assert how[f"{API}:"] != "health checking"


def test_what_a_person_did_just_before_is_told_and_is_no_mitigation() -> None:
    """It may have set it off; what somebody did hours before is left out."""
    rows = (
        row(-7200, "operator", "web", "pause", "ada"),
        row(-30, "operator", "demo", "reload: revision 4", "ada"),
        *bad_noon(),
    )
    made = from_journal(rows, REGION, NOW)
    assert made.timeline.events[0].words == "operator: demo reload: revision 4"
    assert len(made.mitigations) == 1


def test_what_a_history_cannot_know_is_null_and_said() -> None:
    """Why it happened, when that was mended and what is to be learnt are a person's to write."""
    made = from_journal(bad_noon(), REGION, NOW)
    assert (made.root_cause, made.root_cause_fixed, made.lessons) == (None, None, ())
    assert {"root_cause", "root_cause_fixed", "lessons", "impact"} <= {each.part for each in made.not_known}
    assert {each.kind.value for each in made.timeline.events} == {"journal"}


def test_what_began_before_and_what_is_not_over_have_no_time() -> None:
    """A "back" without its "removed" began before the span; a target still out has no end."""
    rows = (
        row(5, "back", "web", "127.0.2.1 back: 5 passes, held 30 s (1 flip); 6 of 6 in"),
        row(9, "removed", "web", "127.0.3.1 dead, out: refused, 0 of 3 checkers see it healthy; 5 of 6 stay"),
    )  # fmt: skip
    made = from_journal(rows, REGION, NOW)
    assert (made.start, made.end) == (None, None)
    assert {"start": "127.0.2.1", "end": "127.0.3.1"}.items() <= {
        each.part: each.why.rpartition(" ")[2] for each in made.not_known
    }.items()
    assert made.timeline.phases[-1].ends is None


def test_a_removal_that_was_asked_for_is_no_trouble() -> None:
    """A drain, or a target that left the file, is what the owner wanted."""
    rows = (
        row(1, "removed", "web", "127.0.1.1 out (operator); 5 of 6 stay"),
        row(2, "removed", "web", "127.0.1.2 out (listing: left the file); 4 of 6 stay"),
        row(3, "back", "web", "127.0.1.1 back; 5 of 6 in"),
    )
    assert troubles(rows) == ()
    with pytest.raises(Refused, match="nothing went wrong"):
        from_journal(rows, REGION, NOW)


def test_a_target_that_flaps_all_day_makes_few_phases() -> None:
    """Where kinds of trouble would make hundreds of phases, only well and not well are told apart."""
    rows = []
    for n in range(200):
        rows.append(row(n * 60, "kept" if n % 2 else "removed", "web", f"127.0.2.{n % 2} dead, out: refused"))
        rows.append(row(n * 60 + 90, "back", "web", f"127.0.2.{n % 2} back: 5 passes"))
    found = troubles(rows)
    assert len(stretches(found, NOON)) <= MOST
    assert at_most(found, What.REMOVED, "web") == 1


KINDS = ("plan", "enacted", "healed", "fenced", "removed", "kept", "back", "refused", "operator", "finding", "?")
LINES = st.builds(
    HistoryRow,
    st.sampled_from(KINDS),
    st.sampled_from([API, "web", "", "store", "\ud800"]),
    st.sampled_from(["", "ada", "enactor/a", "load balancer"]),
    st.one_of(
        st.text(max_size=30),
        st.sampled_from([each.text for each in bad_noon()] + ["fail open: x", "fail open is over", "suspect: y"]),
    ),
    st.one_of(st.integers(NOON, NOON + 100 * SECOND), st.integers(-(2**62), 2**62)),
)  # fmt: skip


@given(st.lists(LINES, max_size=12))
def test_any_history_makes_a_record_that_is_right_or_none(rows: list[HistoryRow]) -> None:
    """Whatever lies in a store: nothing but Refused is raised, and what is made is read back the same."""
    try:
        made = from_journal(rows, REGION, NOW)
    except Refused:
        return
    assert mistakes(made) == []
    assert read_record(text(made).encode(), "x") == made
    assert msgspec.to_builtins(made)["schema"] == "fencepost.incident/1"
