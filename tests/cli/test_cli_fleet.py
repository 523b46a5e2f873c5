"""``fencepost fleet``: what a person reads, what a program does, and the exit codes."""

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fleet_running import FleetRegion
from msgspec import structs
from patience import patient

from fencepost.cli.fleet.reading import FROM_STORE
from fencepost.core.capacity import attempts
from fencepost.core.capacity.rows import CheckpointRow, InstanceRow, NetworkRow
from fencepost.core.instant import MINUTE, SECOND


@pytest.fixture
def region(tmp_path: Path) -> FleetRegion:
    return FleetRegion(tmp_path)


@pytest.fixture
def api(region: FleetRegion) -> Iterator[FleetRegion]:
    with region.api():
        yield region


def told(text: str) -> str:
    """A transcript without what differs from run to run."""
    text = re.sub(r"web-[a-z2-9]{8}", "web-NAME", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", text)
    return re.sub(r"/\S+/region\.toml", "region.toml", text)


def fill(region: FleetRegion) -> None:
    """Three hosts, one instance that is ready, one that waits, one that has ended."""
    asked = time.time_ns() - 90 * MINUTE - 30 * SECOND
    there, row = attempts.placed(
        InstanceRow("web-aaaa2222", "web", port=8080, asked_at=asked), region.held("h1"), "192.0.2.10"
    )
    region.put(there, row, structs.replace(region.held("h2", "b"), left=5), region.held("h3", "b"))
    region.put(structs.replace(region.held("h3", "b"), lease="lapsed"))
    region.put(NetworkRow("web-aaaa2222.1", "h1", 3, "d", 1, "{}", (3, "d", 6, region.life)))
    waits = InstanceRow("web-bbbb3333", "web", attempt=1, why="web-bbbb3333.1 ended by itself on h2")
    region.put(waits, InstanceRow("web-cccc4444", "web", "ended", why="terminated"))
    region.put(CheckpointRow("1", "m1", time.time_ns() + MINUTE, ("h1", "h2"), (1, 40)))


def test_a_drained_host_whose_instances_have_no_place_says_so(api: FleetRegion) -> None:
    """Both lists looked as if the drain went on: it had nowhere to go."""
    full = structs.replace(api.held("h1"), word="drain", room=2)
    there, row = attempts.placed(InstanceRow("web-aaaa2222", "web", port=8080), full, "192.0.2.10")
    api.put(there, row)
    line = "h1 is drained, and 1 of its instances has no place elsewhere: add a host, or  fencepost resume h1"
    assert line in api.call("fleet", "hosts").stdout
    assert "1 has no place elsewhere, though h1 is drained: no host has room" in api.call("fleet", "instances").stdout
    assert api.json("fleet", "hosts")[1]["hosts"][0]["stuck"] == 1
    api.put(api.held("h2", "b"))
    for listed in ("hosts", "instances"):
        assert "no place" not in api.call("fleet", listed).stdout


HOSTS = """\
3 hosts: 1 held, 1 suspect, 1 lapsed; room for 3 more
 HOST  ZONE  LEASE    USED    WORD  SEEN      AT
 h1    a     held     1 of 4  -     1 s ago   192.0.2.1:7700
 h2    b     suspect  0 of 4  -     40 s ago  192.0.2.1:7700
 h3    b     lapsed   0 of 4  -     -         192.0.2.1:7700
never calibrated: fencepost fleet calibrate  measures how many may be asked at once
"""
INSTANCES = """\
2 instances: 1 ready, 1 waiting
 INSTANCE      STATE    HOST  ZONE  ADDRESS          ATTEMPT  ASKED
 web-aaaa2222  ready    h1    a     192.0.2.10:8080        1  1 h 30 min ago
 web-bbbb3333  waiting  -     -     -                      1  -
 1 waiting: web-bbbb3333.1 ended by itself on h2
1 more has ended (--all shows them)
"""


def test_hosts_and_instances_are_read_from_the_api(api: FleetRegion) -> None:
    """What is sums up on line one; what isn't as it should be says why below."""
    fill(api)
    assert api.call("fleet", "hosts").stdout == HOSTS
    assert api.call("fleet", "instances").stdout == INSTANCES
    zone = api.call("fleet", "hosts", "--zone", "a").stdout
    assert zone.startswith("1 host: 1 held; room for 3 more\n")
    assert api.json("fleet", "instances", "--host", "h1")[1]["instances"][0]["instance"] == "web-aaaa2222"
    code, document = api.json("fleet", "instances", "--all")
    assert (code, document["schema"], document["source"]) == (0, "fencepost.instances/1", "api")
    assert [each["state"] for each in document["instances"]] == ["ready", "waiting", "ended"]


def test_without_the_api_they_are_read_from_the_store(region: FleetRegion) -> None:
    """The commands one needs in an outage work in it, and line one says so."""
    fill(region)
    first = f"{FROM_STORE}; no manager runs: leases and instances are as they stood 0 s ago\n"
    assert region.call("fleet", "hosts").stdout == first + HOSTS
    assert region.call("fleet", "instances").stdout == first + INSTANCES
    code, document = region.json("fleet", "hosts")
    assert (code, document["source"], len(document["hosts"])) == (0, "store", 3)


def test_an_empty_fleet_says_what_comes_next(api: FleetRegion) -> None:
    """Nothing is no table."""
    said = api.call("fleet", "hosts").stdout
    assert re.match(r"no host has made itself known; one does by  fencepost run agent\n.* within 30 s of", said)
    said = api.call("fleet", "instances").stdout
    assert said == "nothing is launched; something is by  fencepost fleet launch web\n"


def test_no_instance_of_a_kind_is_not_nothing_launched(api: FleetRegion) -> None:
    """Who has just drained a host would read that everything is gone."""
    fill(api)
    assert api.call("fleet", "instances", "--host", "h2").stdout == "no instance at h2\n"
    api.put(InstanceRow("web-dddd5555", "web", "ended", host="h3", why="terminated"))
    said = api.call("fleet", "instances", "--pool", "web", "--host", "h3").stdout
    assert said == "no instance of pool web at h3; 1 has ended (--all shows them)\n"


def test_launch_says_names_and_key_and_is_the_same_with_that_key(api: FleetRegion) -> None:
    """A script that was interrupted runs again."""
    api.put(api.held("h1"))
    first = api.call("fleet", "launch", "web", "--count", "2", "--key", "k1")
    assert first.returncode == 0
    assert told(first.stdout) == (
        "2 instances of web launched, key k1\n"
        "  web-NAME\n"
        "  web-NAME\n"
        "  now      waiting for a host; in DNS once each runs there, passes its checks and is 30 s old\n"
        "  watch    fencepost fleet instances --pool web\n"
        "  wait     fencepost fleet launch web --count 2 --key k1 --wait    these; returns once DNS answers\n"
        "  end      fencepost fleet terminate web-NAME web-NAME\n"
    )
    assert api.call("fleet", "launch", "web", "--count", "2", "--key", "k1").stdout == first.stdout
    code, document = api.json("fleet", "launch", "web", "-n", "2", "--key", "k1")
    assert code == 0
    assert sorted(document["instances"]) == sorted(api.instances())
    other = api.call("fleet", "launch", "web", "--key", "k1")
    assert (other.returncode, told(other.stderr)) == (
        1,
        "error: key: the key k1 stands for another launch, of 2 instances\n"
        "  try      draw another key for each launch\n",
    )


def test_no_room_and_no_time_are_told_apart(api: FleetRegion) -> None:
    """Exit 3 both, in different words: one wants hosts, the other a while, with the line that asks again."""
    api.put(api.held("h1", room=10_000))
    code, document = api.json("fleet", "launch", "web", "--count", "1000", "--key", "k1")
    assert code == 0
    done = api.call("fleet", "launch", "web", "--count", "300", "--key", "k2")
    assert done.returncode == 3
    assert re.fullmatch(
        r"error: the API at HOST:PORT: request limit exceeded: 1000 launches wait already\n"
        r"  try      in \d+ s:  fencepost fleet launch web --count 300 --key k2\n",
        told(done.stderr),
    )
    code, document = api.json("fleet", "launch", "web", "--count", "300", "--key", "k2")
    assert (code, document["error"]["kind"]) == (3, "request limit exceeded")
    api.put(api.held("h1", room=1000))
    done = api.call("fleet", "launch", "web")
    assert (done.returncode, told(done.stderr)) == (
        3,
        "error: the API at HOST:PORT: insufficient capacity: room for 0, and 1 asked for\n"
        "  try      fencepost fleet hosts    shows where room is; add hosts, or terminate instances\n",
    )
    code, document = api.json("fleet", "launch", "web")
    assert (code, document["error"]["kind"]) == (3, "insufficient capacity")


def test_launch_without_the_api_is_not_reachable(region: FleetRegion) -> None:
    """Only the API knows how many may come in."""
    done = region.call("fleet", "launch", "web")
    assert done.returncode == 3
    assert "doesn't answer (Connection refused)" in done.stderr
    assert not region.instances()


def test_waiting_ends_when_all_are_ready_or_says_what_is_missing(api: FleetRegion) -> None:
    """A launch isn't given up when its time is over, and the message says so."""
    api.put(api.held("h1"))
    launch = ("fleet", "launch", "web", "--key", "k1", "--wait")
    soon = ("--timeout", f"{patient(1000):.0f}ms")
    done = api.call(*launch, *soon)
    assert (done.returncode, told(done.stderr)) == (
        3,
        "error: pool web: 0 of 1 ready; web-NAME is waiting\n"
        "  try      fencepost fleet instances --pool web    shows how they get on; they are not given up\n",
    )
    (row,) = api.instances().values()
    there, placed = attempts.placed(row, api.held("h1"), "192.0.2.10")
    api.put(there, placed, NetworkRow(placed.id, "h1", 3, "d", 1, "{}", (3, "d", 6, api.life)))
    done = api.call(*launch, *soon)
    assert (done.returncode, told(done.stderr)) == (
        3,
        "error: pool web: 1 of 1 ready, not yet in DNS: 192.0.2.10\n"
        "  try      fencepost explain 192.0.2.10    says what it waits for; it isn't given up\n",
    )
    api.put(structs.replace(placed, ends=3, why="web-1.3 ended by itself on h1: exit code 1: no port"))
    done = api.call(*launch)
    assert done.returncode == 1
    assert "ended by itself 3 times in a row; the last: web-1.3 ended by itself on h1: exit code 1" in done.stderr
    api.put(structs.replace(placed, state="ended", why="terminated"))
    done = api.call(*launch)
    assert (done.returncode, told(done.stderr)) == (1, "error: pool web: web-NAME is ended: terminated\n")


def test_words_about_hosts_are_said_and_taken_back(region: FleetRegion) -> None:
    """Also with the API down; the effect is said first, and resume ends any of them."""
    fill(region)
    done = region.call("fleet", "cordon", "h1")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "1 instance there: it goes on\nerror: Do it? Nobody is there to say yes\n  try      add --yes\n",
    )
    done = region.call("fleet", "cordon", "h1", "--reason", "disk swap", "--yes")
    assert (done.returncode, done.stdout) == (
        0,
        "h1 is cordoned: nothing more is placed there\n  back     fencepost resume h1\n",
    )
    done = region.call("fleet", "drain", "h1", "--yes")
    assert done.stderr == (
        "h1: this replaces its cordon\n1 instance to start elsewhere; room for 0 there; 1 stays until there is more\n"
    )
    assert done.stdout == (
        "h1 is drained: what runs there starts elsewhere first\n"
        "  see      fencepost fleet instances --host h1\n"
        "  back     fencepost resume h1\n"
    )
    assert " h1    a     held     1 of 4  drain " in region.call("fleet", "hosts").stdout
    done = region.call("resume", "h1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "h1: the drain is over\n", "ends  drain of host h1\n")
    assert region.json("fleet", "drain", "h3", "--gone", "--yes") == (0, {"done": "gone", "on": ["h3"]})
    history = region.call("history", "--only", "operator").stdout
    for said in (
        "cordons host h1; reason: disk swap",
        "drains host h1",
        "ends the drain of host h1",
        "h3 is gone for good",
    ):
        assert said in history


def test_a_second_drain_says_what_is_left_to_move(region: FleetRegion) -> None:
    """What has its next attempt elsewhere already isn't to start there once more."""
    fill(region)
    region.call("fleet", "drain", "h1", "--yes")
    row = region.instances()["web-aaaa2222"]
    there, moved = attempts.moved(row, region.held("h4"), "10.4.0.1")
    region.put(there, moved)
    done = region.call("fleet", "drain", "h1", "--yes")
    assert done.stderr == (
        "h1: so it is already\n"
        "1 instance started elsewhere already, and still to be stopped there\n"
        "nothing else runs there\n"
    )


def test_a_host_is_forgotten_once_nothing_can_run_there(region: FleetRegion) -> None:
    """A list that names machines long gone hides those that are missing today."""
    fill(region)
    done = region.call("fleet", "forget", "h1", "--yes")
    assert (done.returncode, done.stdout) == (1, "")
    assert "h1 holds its lease and runs 1 instance" in done.stderr
    assert "fencepost fleet drain h1" in done.stderr
    assert region.call("fleet", "forget", "h3").returncode == 2
    done = region.call("fleet", "forget", "h3", "--reason", "scrapped", "--yes")
    assert (done.returncode, done.stdout) == (
        0,
        "h3 is forgotten; it is known again once an agent of that name registers\n",
    )
    assert " h3 " not in region.call("fleet", "hosts").stdout
    assert "there is no host h3" in region.call("fleet", "drain", "h3", "--yes").stderr
    assert "forgets host h3; reason: scrapped" in region.call("history", "--only", "operator").stdout


def test_terminate_says_what_it_ends(region: FleetRegion) -> None:
    """And once more, what has ended."""
    fill(region)
    names = ("web-aaaa2222", "web-bbbb3333", "web-cccc4444")
    assert region.call("fleet", "terminate", *names).returncode == 2
    done = region.call("fleet", "terminate", *names, "--yes")
    assert (done.returncode, done.stdout) == (
        0,
        "web-aaaa2222 is ending\nweb-bbbb3333 is ending\nweb-cccc4444 has ended\n",
    )
    assert done.stderr.splitlines()[0] == "web-aaaa2222: ready at h1, of pool web"
    assert region.instances()["web-aaaa2222"].state == "ending"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("hosts", "--zone", "q"), 1, "there is no zone q"),
        (("instances", "--pool", "wbe"), 1, 'did you mean "web"?'),
        (("drain", "h9"), 1, "there is no host h9"),
        (("cordon", "hh1"), 1, "did you mean h1?"),
        (("terminate", "web-aaaa2223"), 1, "did you mean web-aaaa2222?"),
        (("drain",), 2, "drain takes hosts"),
        (("cordon",), 2, "cordon takes hosts"),
        (("forget",), 2, "forget takes hosts"),
        (("forget", "h9"), 1, "there is no host h9"),
        (("terminate",), 2, "terminate takes instances"),
        (("hots",), 2, "fencepost fleet hosts"),
        (("launch", "web", "--cuont", "2"), 2, "fencepost fleet launch --help"),
        (("launch", "web", "--count", "two"), 2, "fencepost fleet launch --help"),
    ],
)
def test_what_cant_be_right_is_refused(region: FleetRegion, words: tuple[str, ...], code: int, said: str) -> None:
    """The nearest right word, and nothing changed."""
    fill(region)
    before = region.instances()
    done = region.call("fleet", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert region.instances() == before


def test_a_region_without_a_fleet_says_what_to_write(tmp_path: Path) -> None:
    """It is a setting, not a mistake."""
    region = FleetRegion(tmp_path)
    path = tmp_path / "region.toml"
    text = path.read_text().replace("[fleet]\n", "").replace('driver = "none"\n', "")
    path.write_text(text.replace("[pool.web.launch]", '[pool.web.targets]\na = ["192.0.2.1"]'))
    done = region.call("fleet", "hosts")
    assert done.returncode == 2
    assert "this region has no fleet" in done.stderr
    assert "write [fleet]" in done.stderr


def replies(*answers: bytes) -> tuple[int, Callable[[], list[bytes]]]:
    """A server that answers so, one connection after the other; its port, and what it was asked."""
    server, asked = socket.create_server(("127.0.0.1", 0)), list[bytes]()

    def serve() -> None:
        for answer in answers:
            link, _ = server.accept()
            with link:
                head, _, body = link.recv(1 << 16).partition(b"\r\n\r\n")
                length = int(re.search(rb"Content-Length: (\d+)", head)[1])  # type: ignore[index]
                while len(body) < length:
                    body += link.recv(1 << 16)
                asked.append(body)
                link.sendall(answer)
        server.close()

    thread = threading.Thread(target=serve)
    thread.start()

    def done() -> list[bytes]:
        thread.join(20)
        return asked

    return server.getsockname()[1], done


def reply(status: str, document: object) -> bytes:
    return f"HTTP/1.1 {status}\r\n\r\n{json.dumps(document)}".encode()


def test_a_lost_reply_is_asked_for_again_under_the_same_key(region: FleetRegion) -> None:
    """A connection that ends without an answer says nothing of what was done (dynamolock #280)."""
    port, asked = replies(b"", b"HTTP/1.1 20", reply("202 Accepted", {"key": "k", "instances": ["web-aaaa2222"]}))
    elsewhere(region, port)
    done = region.call("fleet", "launch", "web")
    assert done.returncode == 0, done.stderr
    assert "  web-aaaa2222\n" in done.stdout
    bodies = [json.loads(body) for body in asked()]
    assert len(bodies) == 3
    assert len({body["key"] for body in bodies}) == 1
    assert bodies[0]["key"]


def test_a_limit_is_waited_for_if_that_was_wanted(region: FleetRegion) -> None:
    """As long as the API says, then again with the same key; without --wait it is said and left."""
    limit = {"error": {"kind": "request limit exceeded", "what": "request limit exceeded", "retry_after_s": 1}}
    port, asked = replies(reply("429 Too Many", limit), reply("202 Accepted", {"key": "k", "instances": []}))
    elsewhere(region, port)
    began = time.monotonic()
    done = region.call("fleet", "launch", "web", "--wait", "--json")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began >= 1
    assert "trying again in 1 s" in done.stderr
    assert len({json.loads(body)["key"] for body in asked()}) == 1


def elsewhere(region: FleetRegion, port: int) -> None:
    """The API is at another port, and its token is known."""
    path = region.folder / "region.toml"
    path.write_text(re.sub(r'(\[api\]\nlisten = )"\S+"', rf'\1"127.0.0.1:{port}"', path.read_text()))
    token = region.folder / "api.token"
    token.write_text("sesame\n")
    token.chmod(0o600)
