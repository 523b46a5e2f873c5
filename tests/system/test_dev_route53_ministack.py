"""A second opinion on the Route 53 stand-in: ministack, another project's, asked the same questions.

It is exact about DELETE and keeps a batch whole (ministack #1308), so the two must agree on what a fence leans on.
Where they differ is held too, so that docs/concepts/route53-stand-in.md stays true. moto can't judge: it takes a stale
DELETE, and keeps what came ahead of a refused change.
"""

import itertools
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from free_ports import free_port
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from patience import Patience, patient
from route53_asked import Asked, asked, changed, client, listed, record

PYTHON = Path(__file__).parents[2] / ".venv" / "peers" / "bin" / "python"
STARTS_WITHIN_S = 30.0
Change = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """An SDK client of ministack, a process on a free loopback port."""
    if not PYTHON.exists():
        pytest.skip("ministack is not installed (make test does it)")
    folder, port = tmp_path_factory.mktemp("ministack"), free_port()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    own = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "SERVICES": "route53", "TMPDIR": str(folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([PYTHON, "-m", "ministack"], env=clean | own, cwd=folder, stdout=log, stderr=log)
    try:
        patience = Patience(STARTS_WITHIN_S)
        while not answers(port):
            if process.poll() is not None or patience.over():
                pytest.fail((folder / "log").read_text()[-2000:])
            time.sleep(0.05)
        yield client(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(patient(10))


def answers(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def ours() -> Iterator[Asked]:
    """The stand-in."""
    with asked() as found:
        yield found


numbers = itertools.count()


def new_zone(sdk: Any) -> str:
    """A zone of its own, for the tests' domain."""
    made = sdk.create_hosted_zone(Name="example.test", CallerReference=f"ministack {next(numbers)}")
    return str(made["HostedZone"]["Id"]).removeprefix("/hostedzone/")


def said(sdk: Any, zone_id: str, changes: tuple[Change, ...]) -> str:
    """What a batch is answered: "" if it was done, else the code."""
    try:
        changed(sdk, zone_id, *changes)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def standing(sdk: Any, zone_id: str) -> list[dict[str, Any]]:
    """What a zone holds, in the order of the listing, values in order of their text."""
    found = listed(sdk, zone_id)
    for each in found:
        each["ResourceRecords"].sort(key=lambda value: value["Value"])
    return found


VALUES = {"A": ("192.0.2.1", "192.0.2.2", "192.0.2.3"), "TXT": ('"a"', '"b c"', '"d" "e"')}
sets = st.sampled_from(("A", "TXT")).flatmap(
    lambda kind: st.builds(
        lambda name, values, ttl: record(name, kind, *values, ttl=ttl),
        st.sampled_from(("a", "b.a", "c-d")),
        st.lists(st.sampled_from(VALUES[kind]), min_size=1, max_size=2, unique=True),
        st.sampled_from((60, 61)),
    )
)
changes = st.tuples(st.sampled_from(("CREATE", "DELETE", "DELETE", "UPSERT")), sets)
batches = st.lists(changes, min_size=1, max_size=4, unique_by=lambda change: (change[1]["Name"], change[1]["Type"]))
SOME = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@SOME
@given(batches=st.lists(batches, min_size=1, max_size=6), exact=st.lists(st.booleans(), min_size=6, max_size=6))
def test_both_say_the_same_to_exact_batches(
    ministack: Any, ours: Asked, batches: list[list[Change]], exact: list[bool]
) -> None:
    """Done or refused alike, and the same records afterwards; some replace what stands, as a fenced write does."""
    here, there = new_zone(ours.client), new_zone(ministack)
    for batch, replaces in zip(batches, exact, strict=False):
        stands = {(each["Name"], each["Type"]): each for each in listed(ours.client, here)}
        whole: list[Change] = []
        for action, wanted in batch:
            live = stands.get((wanted["Name"], wanted["Type"]))
            whole += [("DELETE", live), ("CREATE", wanted)] if replaces and live else [(action, wanted)]
        assert said(ours.client, here, tuple(whole)) == said(ministack, there, tuple(whole))
        assert standing(ours.client, here) == standing(ministack, there)


ONE = record("w", "A", "192.0.2.1")
DIFFERENCES: dict[str, tuple[Change, ...]] = {
    "a CNAME beside other records": (("CREATE", ONE), ("CREATE", record("w", "CNAME", "x.test."))),
    "a CNAME at the zone's own name": (("CREATE", record("", "CNAME", "x.test.")),),
    "a simple set beside a weighted one": (
        ("CREATE", ONE),
        ("CREATE", record("w", "A", "192.0.2.2", SetIdentifier="x", Weight=1)),
    ),
    "weighted sets of two TTLs": tuple(
        ("CREATE", record("w", "A", "192.0.2.1", ttl=ttl, SetIdentifier=str(ttl), Weight=1)) for ttl in (60, 61)
    ),
    "a value that isn't of its type": (("CREATE", record("w", "A", "nowhere")),),
    "a value given twice": (("CREATE", record("w", "A", "192.0.2.1", "192.0.2.1")),),
    "more than 1,000 records": tuple(("CREATE", record(f"h{n}", "A", "192.0.2.1")) for n in range(1001)),
    "more than 500 records by UPSERT": tuple(("UPSERT", record(f"h{n}", "A", "192.0.2.1")) for n in range(501)),
    "more than 32,000 characters": tuple(("CREATE", record(f"h{n}", "TXT", f'"{"x" * 198}"')) for n in range(161)),
    "a name of another zone": (("CREATE", {**ONE, "Name": "w.other.test."}),),
    "one set created, then deleted": (("CREATE", ONE), ("DELETE", ONE)),
    "one set by UPSERT twice": (("UPSERT", ONE), ("UPSERT", record("w", "A", "192.0.2.2"))),
    "a weight past 255": (("CREATE", record("w", "A", "192.0.2.1", SetIdentifier="x", Weight=256)),),
}
"""What we refuse and ministack 1.5 takes."""


@pytest.mark.parametrize("what", DIFFERENCES)
def test_what_only_we_refuse(ministack: Any, ours: Asked, what: str) -> None:
    """Each is a row of docs/concepts/route53-stand-in.md."""
    assert said(ours.client, new_zone(ours.client), DIFFERENCES[what]) in ("InvalidChangeBatch", "InvalidInput")
    assert said(ministack, new_zone(ministack), DIFFERENCES[what]) == ""
    assert f"- {what}\n" in (Path(__file__).parents[2] / "docs/concepts/route53-stand-in.md").read_text()


def test_the_zone_s_own_records(ministack: Any, ours: Asked) -> None:
    """ministack lets them go."""
    for sdk, refused in ((ours.client, "InvalidChangeBatch"), (ministack, "")):
        zone_id = new_zone(sdk)
        found = sdk.list_resource_record_sets(HostedZoneId=zone_id)["ResourceRecordSets"]
        soa = next(each for each in found if each["Type"] == "SOA")
        assert said(sdk, zone_id, (("DELETE", soa),)) == refused


def test_how_many_reasons_a_refusal_gives(ministack: Any, ours: Asked) -> None:
    """All of them in brackets (external-dns #5939); ministack the first, without."""
    stale = tuple(("DELETE", record(name, "A", "192.0.2.1")) for name in ("a", "b"))
    for sdk, reasons in ((ours.client, 2), (ministack, 1)):
        with pytest.raises(ClientError) as caught:
            changed(sdk, new_zone(sdk), *stale)
        text = caught.value.response["Error"]["Message"]
        assert text.count("but it was not found") == reasons
        assert text.startswith("[") == (reasons == 2)


def test_how_a_wildcard_comes_back(ministack: Any, ours: Asked) -> None:
    """In octal (external-dns #264); ministack as it was given."""
    names = []
    for sdk in (ours.client, ministack):
        zone_id = new_zone(sdk)
        assert said(sdk, zone_id, (("CREATE", record("*", "A", "192.0.2.1")),)) == ""
        names += [each["Name"] for each in listed(sdk, zone_id)]
    assert names == [r"\052.example.test.", "*.example.test."]
