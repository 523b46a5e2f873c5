"""What ``up`` offers to try: lines that stay while they are copied, name nobody dead, and say what comes of them."""

import asyncio
import json
import os
import time
from pathlib import Path

import pytest
from msgspec import structs

from fencepost.assembly.places import draw_tsig_key
from fencepost.cli.up import Run
from fencepost.cli.up_fleet import UpFleet
from fencepost.cli.up_lines import Steady
from fencepost.cli.up_screen import told
from fencepost.cli.up_tries import DRAWN_MOST, Tries, answered
from fencepost.dev.sample import sample_text
from fencepost.roles.dns_server.weights import ADDRESSES_MAX
from fencepost.roles.fleet.view import HostSeen, InstanceSeen
from fencepost.roles.status.compose import compose
from fencepost.roles.status.document import Out, PoolStatus, Status
from fencepost.roles.status.facts import Facts
from fencepost.roles.supervisor import Ended
from fencepost.settings import load

REGION = load(Path(__file__).parents[2] / "src/fencepost/dev/sample.toml", {})
TARGETS = [target.address for target in REGION.pools[0].targets]
PIDS: dict[str, int | None] = {
    **{f"enactor/{zone}": 10 + place for place, zone in enumerate("abc")},
    **{f"target/{address}": 20 + place for place, address in enumerate(TARGETS)},
}
FIRST, ONE, OTHER, ENACTOR = "target/127.0.2.1", "target/127.0.3.1", "target/127.0.1.1", "enactor/b"


def standing(budget: float = 2.0, out: int = 0, next_s: float | None = None) -> Status:
    """The sample with so much budget left and so many out."""
    pool = PoolStatus("web", 6, 6 - out, out, 0, out, 0, None, False, 2, 3, budget, next_s, max_out_targets=2)
    return structs.replace(compose(Facts(REGION, 1, "api")), pools=(pool,))


def answering(status: Status, addresses: list[str], kept: tuple[str, ...] = ()) -> Status:
    """The same, with what its first endpoint answers."""
    first, *others = status.endpoints
    return structs.replace(status, endpoints=(structs.replace(first, addresses=tuple(addresses), kept=kept), *others))


def lines(tries: Tries, status: Status, pids: dict[str, int | None], columns: int = 200) -> list[str]:
    """The lines, without more than one space between words."""
    return [" ".join(line.split()) for line in tries.lines(status, pids, columns)]


def kills(found: list[str]) -> list[str]:
    """The two lines about targets."""
    return found[2:4]


def test_the_lines_stay_as_they_are_while_what_they_name_lives() -> None:
    """They were once made anew each second, so the one just copied killed another target than it had said."""
    tries = Tries(REGION)
    found = lines(tries, standing(), PIDS)
    assert kills(found) == [
        "kill 22 127.0.2.1 leaves within 3.5 s",
        "kill 24; sleep 5; kill 20 one more leaves, one is kept",
    ]
    other = {**PIDS, "target/127.0.1.2": 97, "enactor/a": 98, "enactor/c": None}
    assert lines(tries, standing(), other) == found, "what others do changes nothing"


def test_every_primary_can_be_asked(tmp_path: Path) -> None:
    """On BIND the panel had no `dig` line; a provider without an address of its own has none."""
    draw_tsig_key(tmp_path / "tsig.key", "fencepost-demo")
    asked = "dig @127.0.0.1 -p 5300 +short api.example.test no addresses"
    for provider, line in (("embedded", asked), ("bind", asked), ("route53-dev", asked)):
        (tmp_path / "region.toml").write_text(sample_text(provider))
        sample = load(tmp_path / "region.toml", {})
        status = structs.replace(standing(), provider=sample.dns.provider)
        assert lines(Tries(sample), status, PIDS)[1] == line, provider
    nowhere = structs.replace(REGION, dns=structs.replace(REGION.dns, provider="clouddns", listen=None))
    assert not any("dig" in each for each in lines(Tries(nowhere), standing(), PIDS))


def test_a_dead_pid_is_shown_nowhere_and_its_successor_is_at_once() -> None:
    """For 80 s `kill 5593` stood there after its target was back as 6171: no such process, or by then another one."""
    tries = Tries(REGION)
    lines(tries, standing(), PIDS)
    killed = {**PIDS, FIRST: None}
    five = answering(standing(1.0, 1), [each for each in TARGETS if each != "127.0.2.1"])
    assert kills(lines(tries, five, killed))[0] == "(127.0.2.1 is down) out of DNS; started again in about a minute"
    back = answering(standing(1.0), TARGETS)
    assert kills(lines(tries, back, {**PIDS, FIRST: 99}))[0].startswith("kill 99 127.0.2.1 ")


def test_only_targets_in_service_are_offered() -> None:
    """It offered to kill one that was out ("leaves within 3.5 s"): nothing came of it."""
    tries = Tries(REGION)
    lines(tries, standing(), PIDS)
    out = answering(standing(1.0, 1), [each for each in TARGETS if each != "127.0.2.1"])
    first, *others = out.endpoints
    drained = structs.replace(first, out=(Out("127.0.2.1", "drained", "operator", None),))
    one, two = kills(lines(tries, structs.replace(out, endpoints=(drained, *others)), PIDS))
    assert one.startswith("(127.0.2.1 is out of DNS) drained; ")
    assert one.endswith(" explain 127.0.2.1")
    assert two == "kill 24; sleep 5; kill 20 one more leaves, one is kept"
    kept = answering(standing(1.0), TARGETS, ("127.0.3.1",))
    assert kills(lines(tries, kept, PIDS))[1].startswith("(127.0.3.1 is kept) it looks dead already; ")


def test_what_is_kept_is_kept_by_the_limit_that_is_reached() -> None:
    """It said "the budget pays for one" where the budget was 2.0 and one was out: max_out was it."""
    tries = Tries(REGION)
    assert "both are kept: max_out is reached by the one above" in kills(lines(tries, standing(2.0, 1), PIDS))[1]
    paused = standing()
    paused = structs.replace(paused, pools=(structs.replace(paused.pools[0], mode="disabled"),))
    one, two = kills(lines(tries, paused, PIDS))
    assert "it is kept: automation is off here" in one
    assert "both are kept: automation is off here" in two


def test_half_a_line_that_was_tried_is_not_offered() -> None:
    """`kill 24; sleep 5; kill 20`, with 24 dead: pasted again it would say that there is no such process."""
    tries = Tries(REGION)
    lines(tries, standing(), PIDS)
    one = answering(standing(1.0, 1), [each for each in TARGETS if each != "127.0.3.1"])
    found = kills(lines(tries, one, {**PIDS, ONE: None}))
    assert found[1] == "(127.0.3.1 is down) out of DNS; started again in about a minute"
    both = answering(standing(0.0, 1), [each for each in TARGETS if each != "127.0.3.1"], ("127.0.1.1",))
    found = kills(lines(tries, both, {**PIDS, ONE: None, OTHER: None}))
    assert found[1].startswith("(127.0.3.1 and 127.0.1.1 are down) out of DNS; kept in DNS; ")
    well = answering(standing(0.0), TARGETS)
    assert kills(lines(tries, well, {**PIDS, ONE: 91, OTHER: 92}))[1].startswith("kill 91; sleep 5; kill 92 ")


def seen(words: dict[str, str], at: list[tuple[str, str]]) -> UpFleet:
    """The sample's fleet as last read: what people said of hosts, and the state and address of each instance."""
    fleet = UpFleet(REGION, with_targets=True)
    hosts = [HostSeen(each.name, each.zone, "", "held", words.get(each.name, ""), 2, 1, 0, ()) for each in fleet.hosts]
    rows = [
        InstanceSeen(f"web-{place}", "web", state, 1, "", "", address, 0, "", "", "")
        for place, (state, address) in enumerate(at)
    ]
    fleet.seen = tuple(hosts), tuple(rows)
    return fleet


def test_no_restart_is_promised_where_none_comes() -> None:
    """`fleet drain a1` moves its instance for good; 127.0.1.1 was to be "started again in about a minute" for ever."""
    others = [("ready", address) for address in TARGETS if address != "127.0.1.1"]
    status = answering(standing(), TARGETS, ("127.0.1.1",))
    down = {**PIDS, OTHER: None}
    for words, state, says in (
        ({}, ("ready", "127.0.1.1"), "started again in about a minute"),
        ({}, ("waiting", ""), "started again in about a minute"),
        ({"a1": "drain"}, ("ready", "127.0.3.12"), "nothing runs at 127.0.1.1 until: resume a1, then fleet launch web"),
        ({}, ("ended", "127.0.1.1"), "nothing runs at 127.0.1.1 until: fleet launch web"),
    ):
        tries = Tries(REGION, gone=seen(words, [*others, state]).gone)
        lines(tries, status, PIDS)
        assert kills(lines(tries, status, down))[1] == f"(127.0.1.1 is down) kept in DNS; {says}"
    tries = Tries(REGION, gone=seen({"a1": "drain"}, [*others, ("ready", "127.0.3.12")]).gone)
    lines(tries, status, PIDS)
    both = kills(lines(tries, status, {**down, ONE: None}))[1]
    assert "; started again in about a minute; nothing runs at 127.0.1.1 until: " in both, "each has its own end"


def test_the_event_of_a_moved_instance_promises_none_either() -> None:
    """The drained host stops the old one as told, and the line said "the sample starts it again in about 60 s"."""
    drained = seen({"a1": "drain"}, [("ready", address) for address in TARGETS if address != "127.0.1.1"]).gone()
    end = Ended(0, again=False)
    assert told(0, "target/127.0.1.1", "exited (pid 7)", drained, end).endswith(
        "exited; its instance was moved or ended"
    )
    assert told(0, "target/127.0.1.11", "exited (pid 8)", drained, end).endswith("moved or ended"), "its second address"
    assert told(0, "target/127.0.1.2", "exited (pid 7)", drained, end).endswith("starts it again in about 60 s")


def test_nothing_is_said_of_a_fleet_that_was_not_read() -> None:
    """Plain processes are started again by the supervisor, and so may those be of which nothing is known yet."""
    fleet = UpFleet(REGION, with_targets=True)
    assert fleet.gone() == {}


@pytest.mark.parametrize(
    ("addresses", "says"),
    [
        (TARGETS, "six addresses"),
        (TARGETS[:1], "one address"),
        ([*TARGETS[:5], "127.0.1.11"], "up to six addresses, drawn by weight"),
        ([*TARGETS, "127.0.1.11", "127.0.2.11"], "up to eight addresses, drawn by weight"),
        ([*TARGETS, *(f"127.0.{zone}.11" for zone in (1, 2, 3))], "up to eight of 9 addresses, drawn by weight"),
    ],
)
def test_how_many_addresses_dig_shows(addresses: list[str], says: str) -> None:
    """After launches it said "10 addresses" while dig showed eight and fewer: our server draws them by weight."""
    assert DRAWN_MOST == ADDRESSES_MAX
    assert answered(REGION, answering(standing(), addresses)) == says
    others = structs.replace(REGION, dns=structs.replace(REGION.dns, provider="rfc2136"))
    assert "drawn" not in answered(others, answering(standing(), addresses)), "another server answers all of them"


def test_an_enactor_that_died_is_named_anew() -> None:
    """It is back in a moment, as another process."""
    tries = Tries(REGION)
    assert "kill -9 11 an enactor dies, unnoticed" in lines(tries, standing(), PIDS)
    assert "(enactor/b is down) started again at once" in lines(tries, standing(), {**PIDS, ENACTOR: None})
    assert "kill -9 95 an enactor dies, unnoticed" in lines(tries, standing(), {**PIDS, ENACTOR: 95})


def test_a_target_that_left_the_file_is_offered_no_more() -> None:
    """A reload; there are too few for a limit then."""
    tries = Tries(REGION)
    lines(tries, standing(), PIDS)
    left = {name: pid for name, pid in PIDS.items() if name != FIRST}
    assert not any("kill 2" in line for line in lines(tries, standing(), left))


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_no_command_is_ever_cut(columns: int) -> None:
    """Half a command that is pasted does something else; on a narrow terminal what it shows stands beneath it."""
    found = Tries(REGION).lines(standing(), PIDS, columns)
    whole = Tries(REGION).lines(standing(), PIDS, 200)
    commands = {line.partition("  ")[0] for line in whole}
    assert all(len(line) <= columns for line in found)
    assert {line.partition("  ")[0].rstrip() for line in found} - {""} <= commands
    if columns == 80:
        assert found[1].endswith("  no addresses"), "beside it"


@pytest.mark.parametrize(
    ("budget", "next_s", "first", "pair"),
    [
        (2.0, None, "127.0.2.1 leaves within 3.5 s", "one more leaves, one is kept"),
        (1.0, None, "127.0.2.1 leaves within 3.5 s", "both are kept: the budget pays for one"),
        (0.3, 140.0, "it is kept: the budget is spent, the next in 2 min 20 s", "both are kept: the budget is spent"),
    ],
)
def test_what_a_kill_does_is_said_as_the_budget_stands(
    budget: float, next_s: float | None, first: str, pair: str
) -> None:
    """A second run of the sample begins with what the first left of the budget."""
    one, two = kills(lines(Tries(REGION), standing(budget, next_s=next_s), PIDS))
    assert first in one
    assert pair in two


class Shown:
    """A screen that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        """Keep it."""
        self.lines.append(text)


def test_one_that_was_terminated_a_moment_ago_is_promised_no_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """`fleet terminate` ends its process within the second, and the fleet as read up to five seconds ago still had it:
    the sample said "starts it again in about 60 s" of each of four."""
    run = Run.__new__(Run)
    run.fleet = seen({}, [("ready", address) for address in [*TARGETS, "127.0.1.11"]])
    run.fleet.looked = time.monotonic()
    now = seen({}, [*(("ready", address) for address in TARGETS), ("ending", "127.0.1.11")]).seen
    monkeypatch.setattr(UpFleet, "look", lambda fleet: setattr(fleet, "seen", now))
    run.news, run.stop, shown = asyncio.Event(), asyncio.Event(), Shown()
    reads, writes = os.pipe()
    os.write(
        writes,
        json.dumps({"at": 0, "name": "target/127.0.1.11", "text": "exited (pid 8)", "ended": [0, False]}).encode()
        + b"\n",
    )
    os.close(writes)
    asyncio.run(run.supervise(reads, Steady(shown)))  # type: ignore[arg-type]  # a part of a screen
    assert shown.lines[0].endswith("127.0.1.11 exited; its instance was moved or ended")
