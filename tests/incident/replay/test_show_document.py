"""The JSON document ``fencepost.replay/1``: its published schema, its bytes, what it tells apart."""

import json
from pathlib import Path

import msgspec
from outcomes import HOSTS, as_it_was, guarded, made_up

from fencepost.incident.replay.options import Options
from fencepost.incident.replay.run import replay
from fencepost.incident.replay.scenario_file import find_scenario
from fencepost.incident.replay.show.document import ReplayDocument, document, json_schema

PUBLISHED = Path(__file__).parents[3] / "docs/operating/replay.schema.json"


def test_the_published_schema_is_that_of_the_document() -> None:
    """A reader builds on the file in docs; a key that is gone or of another type is found here."""
    assert json.loads(PUBLISHED.read_text()) == json_schema()


def test_documents_are_of_the_published_form() -> None:
    """Read back strictly, nothing is lost."""
    for outcome in (as_it_was(), guarded(), made_up()):
        said = document(outcome)
        read = msgspec.convert(said, ReplayDocument, strict=True)
        assert msgspec.to_builtins(read) == said


def test_the_same_seed_gives_the_same_bytes_but_for_the_cpu_time() -> None:
    """What may differ between two runs is named, and is nothing else."""
    again = document(replay(find_scenario("aws-2025-10-19"), Options(hosts=HOSTS)))
    first = document(as_it_was())
    assert again["figures"].pop("cpu_s") > 0
    assert first["figures"].pop("cpu_s") > 0
    assert json.dumps(again) == json.dumps(first)


def test_phases_tell_script_from_finding() -> None:
    """A length that is equal because a person ended it at the published hour is no finding."""
    phases = document(made_up())["phases"]
    assert [(each["name"], each["reported_s"], each["simulated_s"], each["by_script"]) for each in phases] == [
        ("away", 1800, 1800, True), ("storm", 6300, 7200, False), ("rest", None, 1800, False),
    ]  # fmt: skip


def test_events_say_whether_they_emerged_and_who_gave_their_hour() -> None:
    """What follows something that was seen emerges, what follows an act on the clock doesn't."""
    events = {each["name"]: each for each in document(made_up())["events"]}
    assert {name: each["emergent"] for name, each in events.items()} == {
        "gone": True, "helped": False, "leases-back": True, "repaired": False, "whole": True,
    }  # fmt: skip
    assert (events["whole"]["kind"], events["whole"]["reported"]) == ("calibrated", None)
    assert events["gone"]["simulated"] == "2026-02-28T22:30:00+01:00"
    assert events["leases-back"]["reported"] == "2026-03-01T00:45:00+01:00"


def test_what_did_not_happen_is_null() -> None:
    """Never 0: with the lease clock no lease is lost, so none comes back."""
    said = json.loads(json.dumps(document(guarded())))
    assert {each["name"]: each["simulated"] for each in said["events"]}["leases-breaking"] is None
    assert said["options"] == {
        "hosts": HOSTS, "seed": 1, "operators": True, "dns_outage_s": 9420,
        "guards": ["clean-up", "lease-clock", "admission", "network-throttle", "readiness", "velocity"],
    }  # fmt: skip


def test_every_value_has_its_source() -> None:
    """Published, estimated and calibrated are told apart in every output."""
    said = document(as_it_was())
    assert {each["kind"] for each in said["values"]} == {"published", "estimate", "calibrated"}
    assert all(each["source"] in said["sources"] for group in ("values", "events") for each in said[group])
    assert [each["name"] for each in said["values"]] == sorted(each["name"] for each in said["values"])


def test_what_stands_in_for_a_decider_is_noted() -> None:
    """The limits of every removal stand where a decider for zones of balancers would; as it was there was neither."""
    assert document(as_it_was())["notes"] == ()
    velocity, throttles = document(guarded())["notes"]
    assert velocity.startswith("velocity: no decider for zones of balancers ships yet")
    assert throttles.startswith("unwinding throttles: nobody set a throttle")
