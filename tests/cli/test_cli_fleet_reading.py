"""Reading a large fleet, or one thing of it: lists that fit a screen, why one instance or host is as it is, DNS."""

import os
import re
import time
from pathlib import Path

import pytest
from fleet_running import FleetRegion
from msgspec import structs

from fencepost.cli.fleet import explaining, launch, tables
from fencepost.cli.fleet.launch import until_answered
from fencepost.cli.fleet.reading import Seen, unkept
from fencepost.cli.fleet.tables import PAGE, host_lines, instance_lines
from fencepost.core.capacity import attempts
from fencepost.core.capacity.rows import CheckpointRow, InstanceRow, NetworkRow
from fencepost.core.instant import MINUTE, SECOND
from fencepost.ports import Beat, Unavailable
from fencepost.roles.fleet.view import HostSeen, InstanceSeen
from fencepost.roles.status.document import EndpointStatus, when


def host(number: int, lease: str = "held") -> HostSeen:
    """A host with room for four."""
    return HostSeen(f"h{number:05}", "a", "192.0.2.1:7700", lease, "", 4, 0, 1, (), 4, 4)


def instance(number: int, state: str = "ready", why: str = "") -> InstanceSeen:
    """An instance."""
    return InstanceSeen(f"web-{number:05}", "web", state, 1, "h1", "a", f"10.0.0.{number % 250}", 80, "", "", why)


def test_a_host_that_cant_write_its_memory_is_shown_with_why_and_is_no_room() -> None:
    """It was offered as room, and nothing but its agent's own log said that it takes no orders (seen on the sample)."""
    why = "/state/memory can't be written: No space left on device"
    unable = structs.replace(host(2), free=0, unable=why, unable_at=when(time.time_ns() - 90 * SECOND))
    lines = host_lines([host(1), unable], 100)
    assert lines[0] == "2 hosts: 2 held; room for 4 more"
    assert lines[-1].startswith(" h00002 takes no orders since ")
    assert lines[-1].endswith(f" ago: {why}")
    said = "\n".join(explaining.host_lines(unable, Seen("api", (unable,))))
    assert f"memory   {why}" in said
    assert "nothing more is placed there" in said


def test_a_long_list_is_cut_on_a_terminal_with_what_is_wrong_first(tmp_path: Path) -> None:
    """Ten thousand lines push away the one that sums them up; and one that is lost among them isn't seen."""
    hosts = [host(number, "lapsed" if number == 9_000 else "held") for number in range(10_000)]
    lines = host_lines(hosts, 100, PAGE)
    assert lines[0] == "10000 hosts: 9999 held, 1 lapsed; room for 39996 more"
    assert lines[2].startswith(" h09000")
    assert len(lines) == 2 + PAGE + 1
    assert lines[-1] == " … and 9,960 more: --all"
    assert len(host_lines(hosts, 100)) == 2 + 10_000
    assert len(host_lines(hosts[:PAGE], 100, PAGE)) == 2 + PAGE
    region = FleetRegion(tmp_path).region
    waits = [instance(number, "waiting" if number == 77 else "ready", "no host has room") for number in range(100)]
    lines = instance_lines(waits, 100, region, PAGE)
    assert lines[2].startswith(" web-00077")
    assert lines[-2:] == [" … and 60 more: --all", " 1 waiting: no host has room"]


def test_a_crash_looping_instance_says_when_it_is_tried_next(tmp_path: Path) -> None:
    """Waits double up to five minutes: "waiting" alone doesn't tell whether to wait for it."""
    region = FleetRegion(tmp_path).region
    assert "NEXT" not in "\n".join(instance_lines([instance(1)], 100, region))
    soon = structs.replace(instance(2, "waiting", "no port"), again_at=when(time.time_ns() + 200 * SECOND), ends=4)
    past = structs.replace(instance(3, "waiting", "no port"), again_at=when(time.time_ns() - SECOND), ends=1)
    lines = instance_lines([instance(1), soon, past], 100, region)
    at = lines[1].index("NEXT")
    assert [line[at:].split("  ")[0].strip() for line in lines[2:5]] == ["-", "in 3 min 20 s", "due now"]


def test_when_the_next_attempt_is_due_stands_in_the_document_and_the_explanation(tmp_path: Path) -> None:
    """Programs that watch a deployment are told too, as a time."""
    region = FleetRegion(tmp_path)
    at = time.time_ns() // SECOND * SECOND + 250 * SECOND
    row = InstanceRow("web-aaaa2222", "web", state="placed", host="h1", attempt=3, ends=2)
    region.put(attempts.over(row, "web-aaaa2222.3 ended by itself", by_itself=True, again_at=at))
    code, document = region.json("fleet", "instances")
    assert (code, document["instances"][0]["again_at"]) == (0, when(at))
    said = region.call("explain", "web-aaaa2222").stdout
    assert re.search(r"^  next     in (4 min|3 min 5\d s).*: its attempt 4$", said, re.MULTILINE), said
    ended = attempts.ending(attempts.over(row, "", by_itself=True, again_at=at))
    assert ended.again_at == 0


def test_only_a_terminal_has_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that reads the list has to have all of it."""
    assert tables.most_of(False) is None
    monkeypatch.setattr(tables, "interactive", lambda _: True)
    assert (tables.most_of(False), tables.most_of(True)) == (PAGE, None)


def test_an_instance_and_a_host_are_explained(tmp_path: Path) -> None:
    """Whoever is told of one by status asks about it by its name."""
    region = FleetRegion(tmp_path)
    why = "web-aaaa2222.2 ended by itself on h2: exit code 1: no port"
    row = InstanceRow("web-aaaa2222", "web", port=8080, attempt=2, ends=2, why=why)
    there, row = attempts.placed(row, region.held("h1"), "192.0.2.10")
    region.put(structs.replace(there, word="cordon"), row)
    region.put(NetworkRow(row.id, "h1", 3, "d", 1, "{}", (3, "d", 6, region.life)))
    done = region.call("explain", "web-aaaa2222")
    assert (done.returncode, done.stdout) == (
        0,
        "instance web-aaaa2222   ready, of pool web; attempt 3\n"
        f"  why      {why}\n"
        "  again    2 attempts in a row ended by themselves; the next comes later each time, at most 5 min\n"
        "  at       h1 (zone a), whose lease is held, serving 192.0.2.10:8080\n"
        "  serves   fencepost explain 192.0.2.10    says whether DNS answers it, and why\n"
        "  as of    no manager runs\n",
    )
    done = region.call("explain", "h1")
    assert done.stdout == (
        "host h1   lease held, zone a, at 192.0.2.1:7700; no answer was noted\n"
        "  lease    it answers, and may be given more\n"
        "  word     cordon: nothing more is placed there;  fencepost resume h1    ends it\n"
        "  room     1 of 4; nothing more is placed there\n"
        "  runs     web-aaaa2222.3  ready\n"
        "  as of    no manager runs\n"
    )
    code, document = region.json("explain", "h1")
    assert (code, document["schema"], document["host"]["host"]) == (0, "fencepost.explain/1", "h1")
    assert region.call("explain", "h99").returncode == 1


def test_what_the_store_says_of_hosts_is_of_when_its_manager_last_ran() -> None:
    """With everything stopped, leases of ten minutes ago were shown as held, in the same words as with a manager."""
    now = time.time_ns()
    here = Beat("host-manager/1", os.getpid(), "1", "up", "", now - SECOND)
    row = CheckpointRow("1", "m", now - 10 * MINUTE)
    assert unkept([here], [row], now) == ""
    silent = structs.replace(here, at=now - 9 * MINUTE)
    said = "no manager runs: leases and instances are as they stood 9 min ago"
    assert unkept([silent], [row], now) == said
    assert unkept([structs.replace(here, pid=2**22 + 1)], [], now).endswith("stood 1 s ago")
    assert unkept([structs.replace(here, role="checker/a")], [], now) == "no manager runs"
    assert Seen("api", still="x").line == ""
    assert Seen("store").line == "the API doesn't answer; this is read from the store"
    assert Seen("store", still=said).line.endswith(f"the store; {said}")


def test_a_launch_is_waited_for_until_dns_answers_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ready means that it may serve; whoever goes on by it, and ends the old ones, wants to know that it does."""
    region, seen, looks = FleetRegion(tmp_path).region, instance(1), list[tuple[str, ...] | None]()

    class Answer:
        """What status says of the endpoint."""

        @property
        def endpoints(self) -> tuple[EndpointStatus, ...]:
            """With what is in DNS now."""
            like = (None,) * 2 + (
                "web",
                5,
                looks.pop(0) if len(looks) > 1 else looks[0],
                (),
                (),
                None,
                None,
                None,
                None,
            )
            return (EndpointStatus("web.example.test", "published", 1, *like),)

    monkeypatch.setattr(launch, "from_api", lambda *_: Answer())
    monkeypatch.setattr(launch, "LOOK_EVERY_S", 0.0)
    looks[:] = [None, (), ("10.0.0.2",), ("10.0.0.1", "10.0.0.2")]
    until_answered(region, "web", [seen], time.monotonic() + 60)
    assert looks == [("10.0.0.1", "10.0.0.2")]
    looks[:] = [("10.0.0.2",)]
    with pytest.raises(Unavailable, match=r"1 of 1 ready, not yet in DNS: 10\.0\.0\.1"):
        until_answered(region, "web", [seen], time.monotonic())
    until_answered(region, "none", [seen], time.monotonic())


def test_a_host_that_never_answered_is_said_to_be_one() -> None:
    """One with another region's fleet.key lapses like a dead one, and only its own log told why."""
    silent = HostSeen("h8", "a", "192.0.2.8:7700", "lapsed", "", 1, 0, None, ())
    said = "\n".join(explaining.host_lines(silent, Seen("api", (silent,))))
    assert "answered nobody: its agent's log says if its fleet.key isn't the region's" in said
    assert "nothing comes through to 192.0.2.8:7700 (UDP and TCP)" in said
    dead = structs.replace(silent, seen_s=99)
    assert "fleet.key" not in "\n".join(explaining.host_lines(dead, Seen("api", (dead,))))
