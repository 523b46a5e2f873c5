"""Who the Route 53 stand-in lets in and how often, and what goes wrong with it on purpose, through a real SDK."""

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, HTTPClientError
from botocore.parsers import ResponseParserError
from route53_asked import DOMAIN, Asked, asked, client, record, refused

from fencepost.dev.route53 import Fault, Route53Settings
from fencepost.dev.route53.gate import SECOND_NS, Gate
from fencepost.dev.route53.refusals import ApiError

CREATE = ("CREATE", record("w", "A", "192.0.2.1"))
LET_IN = {"authorization": "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/route53/aws4_request, Signature=0"}


@pytest.fixture
def zone() -> Iterator[Asked]:
    """A stand-in with one zone."""
    with asked() as found:
        yield found


def test_a_key_that_is_not_known_is_refused() -> None:
    """API reference, "Common Errors"."""
    with asked(access_keys=frozenset({"known"})) as zone:
        with refused("InvalidClientTokenId"):
            client(zone.server.url, key="other").list_hosted_zones()
        assert client(zone.server.url, key="known").list_hosted_zones()["HostedZones"]


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        ("", "MissingAuthenticationToken"),
        ("Basic YTpi", "IncompleteSignature"),
        (LET_IN["authorization"].replace("route53", "s3"), "SignatureDoesNotMatch"),
    ],
)
def test_an_unsigned_request_is_refused(zone: Asked, authorization: str, code: str) -> None:
    """API reference, "Common Errors"; a signature for another service is none."""
    connection = http.client.HTTPConnection("127.0.0.1", zone.server.port, timeout=5)
    headers = {"Authorization": authorization} if authorization else {}
    connection.request("GET", "/2013-04-01/hostedzone", headers=headers)
    reply = connection.getresponse()
    assert reply.status == 403
    assert f"<Code>{code}</Code>" in reply.read().decode()
    connection.close()


def test_what_is_no_request_of_this_api_is_refused(zone: Asked) -> None:
    """An unknown path; a body that isn't the XML asked for (stalwartlabs/dns-update #44); a document type."""
    connection = http.client.HTTPConnection("127.0.0.1", zone.server.port, timeout=5)
    path = f"/2013-04-01/hostedzone/{zone.zone_id}/rrset"
    root = "ChangeResourceRecordSetsRequest"
    for method, target, body, code in [
        ("GET", "/2013-04-01/nothing", "", "UnknownOperationException"),
        ("POST", path, "<ChangeBatch/>", "MalformedInput"),
        ("POST", path, f"<{root}/>", "MalformedInput"),
        (
            "POST",
            path,
            "<ChangeResourceRecordSetsRequest><ChangeBatch/></ChangeResourceRecordSetsRequest>",
            "MalformedInput",
        ),
        ("POST", path, "<a", "MalformedInput"),
        ("POST", path, '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "MalformedInput"),
    ]:
        connection.request(method, target, body=body, headers={"Authorization": LET_IN["authorization"]})
        reply = connection.getresponse().read().decode()
        assert f"<Code>{code}</Code>" in reply, (body, reply)
    connection.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\xff\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 99\r\n\r\nshort",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
        b"x" * 70_000,
    ],
)
def test_what_is_no_http_ends_its_own_connection_alone(zone: Asked, sent: bytes) -> None:
    """The others go on."""
    with socket.create_connection(("127.0.0.1", zone.server.port), timeout=5) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(4096):
                pass
    assert zone.listed() == []


def test_a_defect_of_its_own_is_told_as_one(zone: Asked, caplog: pytest.LogCaptureFixture) -> None:
    """API reference, "Common Errors", InternalFailure; it is in the log, and the next request is answered."""
    with unable(zone), refused("InternalFailure"):
        zone.change(CREATE)
    assert "a defect in the Route 53 stand-in" in caplog.text
    zone.change(("CREATE", record("next", "A", "192.0.2.1")))


@contextlib.contextmanager
def unable(zone: Asked) -> Iterator[None]:
    """A stand-in whose file can't be written."""
    zone.server._data = Path("/nowhere/at/all")
    yield
    zone.server._data = None


def test_denied_actions(zone: Asked) -> None:
    """AccessDenied for the actions that a test denies; others go on."""
    zone.server.gate.denied = frozenset({"ChangeResourceRecordSets"})
    with refused("AccessDenied"):
        zone.change(CREATE)
    assert zone.listed() == []


def test_five_requests_in_any_one_second() -> None:
    """Developer Guide, "Quotas": past it HTTP 400, Throttling, "Rate exceeded"; what was refused isn't counted."""
    gate = Gate(Route53Settings())
    at = [0, 0, 100, 200, 300]
    for now in at:
        gate.check("GetChange", LET_IN, now)
    for now in (300, SECOND_NS - 1):
        with pytest.raises(ApiError, match="Throttling: Rate exceeded") as caught:
            gate.check("GetChange", LET_IN, now)
        assert caught.value.status == 400
    gate.check("GetChange", LET_IN, SECOND_NS)
    gate.check("GetChange", LET_IN, SECOND_NS)
    with pytest.raises(ApiError, match="Throttling"):
        gate.check("GetChange", LET_IN, SECOND_NS + 99)


def test_throttling_is_seen_by_a_client(zone: Asked) -> None:
    """external-dns #1293, octodns #96: "Rate exceeded" is an ordinary answer. Here none at all may pass."""
    zone.server.gate.requests_per_s = 0
    with pytest.raises(ClientError, match="Rate exceeded") as caught:
        zone.client.list_hosted_zones()
    assert caught.value.response["Error"]["Code"] == "Throttling"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_one_batch_a_zone_at_a_time() -> None:
    """Developer Guide, "Quotas"; text as in ruby_route_53 #34. Another zone, and reading, aren't held up."""
    with asked(zones=(DOMAIN, "other.test"), batch_s=30.0) as zone:
        held = threading.Thread(target=left_alone, args=(zone,), daemon=True)
        held.start()
        server = zone.server
        while not server.within(lambda: server.account.zone(zone.zone_id).busy):
            time.sleep(0.005)
        with pytest.raises(ClientError, match="still processing a prior request") as caught:
            zone.change(CREATE)
        assert caught.value.response["Error"]["Code"] == "PriorRequestNotComplete"
        assert zone.listed() == []
    held.join(10)
    assert not held.is_alive()


def left_alone(zone: Asked) -> None:
    """A batch whose answer never comes, as the server is ended meanwhile."""
    with pytest.raises(HTTPClientError):
        client(zone.server.url).change_resource_record_sets(
            HostedZoneId=zone.zone_id,
            ChangeBatch={"Changes": [{"Action": "CREATE", "ResourceRecordSet": CREATE[1]}]},
        )


def test_an_error_on_each_sixth_call(zone: Asked) -> None:
    """external-dns #1293: all is done in the end, a little slower, by an SDK that tries again."""
    zone.server.faults.add(Fault("error", "ChangeResourceRecordSets", 6, code="Throttling", status=400))
    for number in range(5):
        zone.change(("CREATE", record(f"a{number}", "A", "192.0.2.1")))
    with refused("Throttling"):
        zone.change(CREATE)
    patient = Asked(zone.server, zone.zone_id)
    patient.client = client(zone.server.url, attempts=3)
    for number in range(12):
        patient.change(("CREATE", record(f"b{number}", "A", "192.0.2.1")))
    assert len(zone.listed()) == 17


@pytest.mark.parametrize(("kind", "done"), [("lost", True), ("cut", True), ("drop", False)])
def test_an_answer_that_does_not_come(zone: Asked, kind: str, done: bool) -> None:
    """No client can tell the three apart by what it was told; only reading tells whether the batch was done.

    A cut answer is a parser's error in botocore, which takes less than was announced for all there is.
    """
    zone.server.faults.add(Fault(kind, "ChangeResourceRecordSets", times=1))
    with pytest.raises((ResponseParserError, HTTPClientError)):
        zone.change(CREATE)
    assert bool(zone.listed()) is done


@pytest.mark.parametrize(("kind", "done"), [("delay", False), ("late", True)])
def test_an_answer_that_comes_too_late(zone: Asked, kind: str, done: bool) -> None:
    """Delayed before or after it is done: meanwhile another client reads which it was."""
    zone.server.faults.add(Fault(kind, "ChangeResourceRecordSets", times=1, delay_s=30.0))
    held = threading.Thread(target=left_alone, args=(zone,), daemon=True)
    held.start()
    while "ChangeResourceRecordSets" not in zone.server.calls:
        time.sleep(0.005)
    assert bool(zone.listed()) is done


def test_faults_are_counted_by_call(zone: Asked) -> None:
    """Each n-th, so many times, of one action or any; the first that is due strikes."""
    faults: Any = zone.server.faults
    faults.add(Fault("error", "GetChange", every=3, times=2))
    faults.add(Fault("drop", every=5))
    struck = [fault.kind if (fault := faults.next("GetChange")) else "" for _ in range(10)]
    assert struck == ["", "", "error", "", "drop", "error", "", "", "", "drop"]
    faults.clear()
    assert faults.next("GetChange") is None
    with pytest.raises(ValueError, match="kind"):
        Fault("explode")
