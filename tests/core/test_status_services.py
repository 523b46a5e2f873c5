"""What status says of an endpoint with SRV records beside it (RFC 2782)."""

from msgspec import structs
from status_examples import API, NOW, WWW, facts, live, region, row, stored

from fencepost.core.record_set import content
from fencepost.core.store import Row
from fencepost.roles.status.compose import compose
from fencepost.roles.status.explain import explain
from fencepost.roles.status.facts import DnsFacts, Facts

WHY = f"another's SRV records stand at _http._tcp.{API}"


def offering(findings: dict[str, dict[str, tuple[str, str]]], newest: Row) -> Facts:
    """The sample whose first endpoint asks for SRV records; what stands at it is as seen from outside."""
    plain = region()
    endpoints = tuple(structs.replace(each, srv="_http._tcp" if each.name == API else "") for each in plain.endpoints)
    looked = DnsFacts(NOW, {API: live(newest), WWW: live(row(WWW))})
    rows = {API: newest, WWW: row(WWW)}
    return facts(
        region=structs.replace(plain, endpoints=endpoints), store=stored(findings=findings, rows=rows), dns=looked
    )


def test_as_planned_is_about_addresses_and_markers() -> None:
    """Who looks from outside doesn't ask for SRV records: that none were seen is no trouble."""
    value = content(row(API).content.addresses, row(API).content.ttl, "_http._tcp", 8080)
    status = compose(offering({}, row(API, value)))
    found = next(each for each in status.endpoints if each.name == API)
    assert found.as_planned is True
    assert not [each for each in status.problems if each.on == API and each.id in ("enactors-behind", "foreign-record")]


def test_a_strangers_service_is_a_problem_with_its_reason() -> None:
    """The enactors found it; status and explain say what stands in the way."""
    given = offering({"enactor/a": {API: ("foreign", WHY)}}, row(API))
    (found,) = [each for each in compose(given).problems if each.id == "foreign-record"]
    assert (found.on, found.what) == (API, f"{WHY}; it is left alone")
    said = explain(given, (), API)
    assert WHY in str(said)
    other = offering({"enactor/a": {WWW: ("ask", "unmarked records")}}, row(API))
    assert "foreign-record" not in {each.id for each in compose(other).problems}
