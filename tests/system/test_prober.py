"""What the prober thinks of an answer, against real sockets on loopback: status, silence, reset, capacity."""

import asyncio
import socket
import struct

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st
from prober_running import (
    OK,
    SOON,
    Results,
    Server,
    closed_port,
    listening,
    patient,
    probing,
    quick,
    serving,
)

from fencepost.adapters.probe import MS, ProbeSettings, ProbeTarget
from fencepost.adapters.probe_http import capacity_of, request, split_head, status_of, unchunk, whole_body
from fencepost.adapters.probe_kinds import open_prober


async def first_result(says: bytes | None, *, then_close: bool = False, **more: object) -> tuple[bool | None, str]:
    """What a prober thinks of one server."""
    async with serving(says, then_close=then_close) as (_, port):
        target = ProbeTarget(SOON, "127.0.0.1")
        async with probing([target], patient(port, **more)) as (_, results):
            await results.until(Results.known)
            return results.known()[0][1:3]


@pytest.mark.parametrize(
    ("says", "verdict"),
    [
        (OK, (True, "")),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (True, "")),
        (b"HTTP/1.0 200\r\n\r\n", (True, "")),
        (b"HTTP/1.1 200 OK\n\n", (True, "")),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, (True, "")),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 503 Busy\r\n\r\n", (False, "status 503")),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", (False, "status 404")),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", (False, "status 302")),
        (b"SSH-2.0-OpenSSH_9.2\r\n", (False, "not an HTTP/1.x answer")),
        (b"HTTP/2 200\r\n\r\n", (False, "not an HTTP/1.x answer")),
        (b"HTTP/1.1 2000 OK\r\n\r\n", (False, "not an HTTP/1.x answer")),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 4000, (False, "response head over 16 KiB")),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, (False, "status 100")),
    ],
)
def test_status_decides(says: bytes, verdict: tuple[bool, str]) -> None:
    """The final answer's status is the verdict (RFC 9110 section 15); a redirect isn't followed (Traefik #5147)."""
    assert uvloop.run(first_result(says)) == verdict


def test_good_statuses_can_be_listed() -> None:
    """With a list of good statuses only those are good, a 302 too and a 200 not."""
    assert uvloop.run(first_result(b"HTTP/1.1 302 Found\r\n\r\n", good_statuses=(302,))) == (True, "")
    assert uvloop.run(first_result(OK, good_statuses=(302,))) == (False, "status 200")


def test_closing_without_an_answer_is_a_failure() -> None:
    """A server that closes, before or in the middle of its head, has not answered."""
    for says in (None, b"HTTP/1.1 200 OK\r\nContent-"):
        assert uvloop.run(first_result(says, then_close=True)) == (False, "closed without an answer")


def test_silence_and_half_an_answer_run_into_the_timeout() -> None:
    """The timeout covers connecting and the whole head, and the cause says how long it was."""
    for says in (None, b"HTTP/1.1 200 OK\r\nContent-"):
        verdict = uvloop.run(first_result(says, timeout_ns=80 * MS, interval_ns=100 * MS))
        assert verdict == (False, "timeout after 80 ms")


def test_an_answer_in_single_bytes_is_taken() -> None:
    """TCP gives no message boundaries: an answer may come byte by byte."""

    async def main() -> None:
        async with (
            serving(None) as (server, port),
            probing([ProbeTarget(SOON, "127.0.0.1")], patient(port)) as (_, results),
        ):
            dripping = []

            async def drops(transport: asyncio.Transport) -> None:
                for place in range(len(OK)):
                    if transport.is_closing():  # judged by its head, the answer's rest isn't waited for
                        return
                    transport.write(OK[place : place + 1])
                    await asyncio.sleep(0.001)

            def drip(self: Server, data: bytes) -> None:
                dripping.append(asyncio.ensure_future(drops(self.transport)))

            server.data_received = drip  # type: ignore[method-assign]
            await results.until(Results.known)
            assert results.known()[0][1:3] == (True, "")
            assert results.known()[0][3] > 0

    uvloop.run(main())


def test_request_names_the_address_and_port_probed() -> None:
    """Host is the address with its port, in brackets for IPv6, without the default port (RFC 9110 section 7.2)."""
    assert b"\r\nHost: 192.0.2.1:8080\r\n" in request("192.0.2.1", 8080, "/")
    assert b"\r\nHost: [2001:db8::1]:8080\r\n" in request("2001:db8::1", 8080, "/")
    assert b"\r\nHost: 192.0.2.1\r\n" in request("192.0.2.1", 80, "/x?y=1")
    for path in ("x", "/a b", "/\r\nX: y", ""):
        with pytest.raises(ValueError, match="must start with /"):
            request("192.0.2.1", 80, path)


def test_tcp_passes_on_connect_alone() -> None:
    """A TCP target needs to accept, not to answer; a closed port is refused."""

    async def main(port: int) -> None:
        targets = [ProbeTarget("mute", "127.0.0.1"), ProbeTarget("closed", "127.0.0.1", port=closed_port())]
        async with probing(targets, patient(port, kind="tcp")) as (_, results):
            await results.until(lambda r: len({x[0] for x in r.known()}) == 2)
        assert ("mute", True, "") in {result[:3] for result in results}
        assert ("closed", False, "connection refused") in {result[:3] for result in results}

    with listening() as port:
        uvloop.run(main(port))


def test_unknown_kind_and_bad_times_are_refused() -> None:
    """A kind that isn't there is named, with those that are; a timeout as long as the interval makes no sense."""
    with pytest.raises(ValueError, match=r"no probe of kind 'htpp'; there are http, tcp"):
        open_prober(ProbeSettings(kind="htpp"), lambda _: None)
    with pytest.raises(ValueError, match="must lie between"):
        ProbeSettings(interval_ns=MS, timeout_ns=MS)


def test_a_reset_connection_is_a_failure() -> None:
    """A target that resets has failed, and the cause says so."""

    async def main() -> None:
        async with (
            serving(None) as (server, port),
            probing([ProbeTarget(SOON, "127.0.0.1")], patient(port)) as (_, results),
        ):

            def reset(self: Server, data: bytes) -> None:
                self.transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                self.transport.abort()

            server.data_received = reset  # type: ignore[method-assign]
            await results.until(Results.known)
            assert results.known()[0][1:3] == (False, "connection reset")

    uvloop.run(main())


@pytest.mark.parametrize(
    ("says", "then_close", "capacity"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n120", False, 120),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n0\n", False, 0),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n25\r\n1\r\n5\r\n0\r\n\r\n", False, 255),
        (b"HTTP/1.0 200 OK\r\n\r\n77\n", True, 77),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n256", False, None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n-1", False, None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfull", False, None),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\n50", False, None),
    ],
)
def test_capacity_is_a_number_or_nothing(says: bytes, then_close: bool, capacity: int | None) -> None:
    """A capacity is an integer from 0 to 255 in a 200 answer; anything odd is no statement and no failure."""

    async def main() -> None:
        async with serving(OK) as (_, port), serving(says, then_close=then_close) as (asked, capacity_port):
            settings = quick(port, capacity_port=capacity_port, capacity_path="/capacity", capacity_every=1)
            async with probing([ProbeTarget(SOON, "127.0.0.1")], settings) as (_, results):
                await results.until(lambda r: len(r) >= 4 and r[-1][4] == capacity)
            assert {x[4] for x in results} <= {capacity, None}, "a busy machine makes some late"
            assert {x[1] for x in results} <= {True, None}
            assert asked.asked[0].startswith(b"GET /capacity HTTP/1.1\r\n")

    uvloop.run(main())


def test_a_length_of_thousands_of_digits_is_no_defect_of_ours() -> None:
    """A target may answer anything (RFC 9112 section 6.3: an invalid length is an error of its own); Python raises for
    an int of over 4,300 digits, and that ended the attempt with a traceback in the log, each time."""
    assert whole_body(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000, b"7", ended=True) is None
    assert whole_body(b"HTTP/1.1 200 OK\r\nContent-Length: 1", b"7", ended=False) == b"7"


def test_capacity_that_falls_silent_is_forgotten() -> None:
    """A capacity is asked for each `capacity_every` rounds, and a silent server's last number doesn't stay."""

    async def main() -> None:
        number = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n40"
        async with serving(OK) as (server, port), serving(number) as (teller, capacity_port):
            settings = quick(port, capacity_port=capacity_port, capacity_path="/capacity", capacity_every=3)
            async with probing([ProbeTarget(SOON, "127.0.0.1")], settings) as (_, results):
                await results.until(lambda r: any(x[4] == 40 for x in r))
                teller.says = None
                await results.until(lambda r: r[-1][4] is None)
                await results.until(lambda r: len(r) >= 12)
            # A round whose probe was late on a busy machine may have asked no more than the one question.
            assert len(teller.asked) <= max(len(server.asked), len(results)) // 3 + 1

    uvloop.run(main())


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_without_an_error(data: bytes) -> None:
    """Whatever a target sends, it gets a verdict: parsing never raises (RFC 9112 section 2.2 asks for no more)."""
    for answer in (data, b"HTTP/1.1 " + data, OK + data):
        parts = split_head(answer)
        head = parts[0] if parts else answer
        status = status_of(head)
        assert status is None or 100 <= status <= 999
        capacity = capacity_of(unchunk(data) or data)
        assert capacity is None or 0 <= capacity <= 255
