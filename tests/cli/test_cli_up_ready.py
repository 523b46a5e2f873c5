"""`up` says "ready" of enactors that can work: of this run, by what each of them says itself."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from fencepost.cli.up_ready import cannot_enact
from fencepost.roles.status.compose import compose
from fencepost.roles.status.document import Ages, Problem, RoleStatus, Status
from fencepost.roles.status.facts import Facts
from fencepost.settings import load

REGION = load(Path(__file__).parents[2] / "src/fencepost/dev/sample.toml", {})
NOW_S = 1_760_946_480
STARTED_S = NOW_S - 5.0
KEY = "doesn't accept our key: TSIG BADSIG"


def status(*, dns_s: float | None = 0.1, stands: dict[str, Any] | None = None, **b: Any) -> Status:
    """Three enactors a second after their first sign of life, that of zone b changed."""
    found = compose(Facts(REGION, NOW_S * 10**9, "api"))
    well = {zone: RoleStatus(f"enactor/{zone}", "up", 1, 0, "0.1.0", 1.0, None, 12) for zone in REGION.zones}
    endpoints = [
        structs.replace(each, **(stands or {"state": "published", "generation": 12})) for each in found.endpoints
    ]
    roles = (*(role for zone, role in well.items() if zone != "b"), structs.replace(well["b"], **b))
    return structs.replace(found, roles=roles, endpoints=tuple(endpoints), ages=Ages(0.1, dns_s, None))


def test_enactors_that_have_read_are_ready_whatever_is_wrong_with_a_single_endpoint() -> None:
    """docs/operating/commands.md, `up`: one refused name makes a role "unavailable", and the others are written."""
    assert cannot_enact(REGION, status(), STARTED_S) == ""
    assert cannot_enact(REGION, status(state="unavailable", last_error="x"), STARTED_S) == ""


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        ({"state": "misconfigured", "last_error": KEY}, f"enactor/b is misconfigured: {KEY}"),
        ({"state": "silent"}, "enactor/b is silent"),
        ({"state": "down"}, "enactor/b is down"),
        ({"state": "up", "generation": None}, "enactor/b has read nothing yet"),
        ({"state": "up", "generation": None, "dns_s": None}, "enactor/b has read nothing yet"),
        ({"state": "unavailable", "generation": None, "last_error": "AXFR: x"}, "enactor/b can't read AXFR: x"),
        ({"seen_s": None}, "enactor/b gave no sign of life yet"),
        ({"seen_s": 9.0}, "enactor/b gave no sign of life yet"),
    ],
)
def test_one_that_cannot_work_is_named_with_its_reason(seen: dict[str, Any], says: str) -> None:
    """Names that an earlier run wrote are answered; a sign of life of that run says nothing of this one's key."""
    assert cannot_enact(REGION, status(**seen), STARTED_S) == says


def test_where_no_marker_of_ours_stands_none_has_to_be_seen() -> None:
    """docs/operating/status.md, foreign: names that are another owner's are left alone; such a region is as ready."""
    foreign = {"state": "foreign", "generation": 7}
    assert cannot_enact(REGION, status(generation=None, stands=foreign), STARTED_S) == ""
    unread = status(generation=None, stands=foreign, dns_s=None)
    assert cannot_enact(REGION, unread, STARTED_S) == "enactor/b has read nothing yet"


def test_a_store_that_cannot_be_read_is_named_as_why_nobody_is_heard() -> None:
    """Signs of life stand in the store."""
    away = Problem(
        "store-unavailable", "unavailable", "store", "the store can't be read: no such host", "x", True, None
    )
    found = structs.replace(status(seen_s=None), problems=(away,))
    assert cannot_enact(REGION, found, STARTED_S).endswith("yet (the store can't be read: no such host)")
    assert cannot_enact(REGION, None, STARTED_S) == "the status of the enactors isn't known yet"
