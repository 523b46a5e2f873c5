"""A replay on a terminal: at 100 columns, in ASCII where need be, colour never alone."""

import re
from collections.abc import Callable

import msgspec
import pytest
from outcomes import HOUR, as_it_was, guarded, made_up

from fencepost.incident.replay.guards import PRODUCTION, Guard
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.run import replay
from fencepost.incident.replay.scenario_file import find_scenario
from fencepost.incident.replay.show.hours import exact
from fencepost.incident.replay.show.judged import judged
from fencepost.incident.replay.show.naming import brief, called
from fencepost.incident.replay.show.terminal import terminal_text

STORY = """\
A made-up evening as it was · 1,000 hosts · seed 1 · 0.5 s CPU       █ both  ▀ reported  ▄ simulated
                     22:30 CET                                      01:30   reported  simulated
 away                █████████                                                  0h30       0h30 =
 storm                        ██████████████████████████████▄▄▄▄                1h45       2h00
 rest                                                           ▄▄▄▄▄▄▄▄▄          -       0h30
 broken leases       ██████████████████████████▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▁▁▁▁▁▁▁▁   peak 1,000
 lease queue         ▁▁▁▁▁▁▁▁▁▁▂▂▃▃▃▄▄▅▅▆▆▇▇███▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁   peak 10,000 calls
 wait for network    ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁   never a minute
 capacity in DNS     ███████████████████████████████████▃▃▃▃▃▃▃▃█████████   least 80 %
who depends on it, and was down
 Shop                ███████████████████████████████████████████▀▀▀▀▀▀▀▀▶       3h35       2h30
=  ended by a person at the published hour, so equal by script; the rest emerges
1 of 2 hours are as near to the reported ones as they have to be (1 min to 10 min); not leases-back
(00:45, here 01:00).
6 values and hours published, 2 calibrated to fit: replay made-up --values lists each
Try  --guards production   or   --guards production --dns-outage 30m   or   --ablate"""


def shown(outcome: Outcome, width: int = 100, unicode: bool = True, colour: bool = False) -> str:
    """The text, as asked for."""
    return terminal_text(outcome, width=width, unicode=unicode, colour=colour)


def test_the_whole_story_at_a_hundred_columns() -> None:
    """Bars one can check by hand: three hours in 52 cells, upper half reported, lower simulated, ``=`` by script."""
    assert shown(made_up()) == STORY


@pytest.mark.parametrize("width", [100, 80, 60, 40])
@pytest.mark.parametrize("outcome", [as_it_was, guarded, made_up])
def test_bars_fit_the_terminal(outcome: Callable[[], Outcome], width: int) -> None:
    """No row of cells is broken by a terminal; prose may be wrapped by who prints it."""
    wide = [line for line in shown(outcome(), width).splitlines() if re.search("[█▀▄▁▂▃▅▆▇]{3}", line)]
    assert wide
    assert max(map(len, wide)) <= width


def test_ascii_says_the_same() -> None:
    """Where the locale isn't UTF-8 three characters stand for three kinds of block."""
    text = shown(made_up(), unicode=False)
    assert text.isascii()
    assert " storm                        ##############################____ " in text
    assert "####^^^^^^^^>" in text


def test_colour_adds_nothing_that_words_lack() -> None:
    """NO_COLOR loses nothing (no-color.org): without its styles the coloured text is the plain one."""
    coloured = shown(as_it_was(), colour=True)
    assert "\x1b[1m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == shown(as_it_was())


def test_only_ends_by_hand_are_equal_by_script() -> None:
    """October 2025: the endpoint's two phases end when people act; the storm, the backlog and the rest emerge."""
    rows = {line[1:25].strip(): line for line in shown(as_it_was()).splitlines()}
    marked = {name for name in rows if rows[name].endswith(" =")}
    assert {"endpoint gone", "repaired by hand"} <= marked
    assert not {"lease storm", "network backlog", "unwinding throttles"} & marked


def test_what_was_over_is_not_drawn_as_if_it_went_on() -> None:
    """``▶`` only where it wasn't over at the end (docs/operating/replay.md): the axis reaches to who came back last."""
    text = shown(replay(find_scenario("database-away"), Options(hosts=200, guards=PRODUCTION)))
    assert "▶" not in text
    assert ">" not in text


def test_a_phase_that_never_was_or_never_ended_is_said_to() -> None:
    """0h00 would be a length."""
    outcome = made_up()
    open_end = msgspec.structs.replace(outcome, happened={"gone": 1800, "repaired": HOUR})
    rows = shown(open_end).splitlines()
    assert rows[3].endswith(">3h00")
    assert "▶" in rows[3]
    assert rows[4].endswith("none")


def test_nothing_is_said_of_reports_where_nothing_was_reported() -> None:
    """A made-up scenario has no published hour: no legend, no empty column, and the hint names the scenario."""
    text = shown(replay(find_scenario("database-away"), Options(hosts=200)))
    assert "reported" not in text
    assert "published" not in text
    assert "▀" not in text.translate(str.maketrans("", "", "▁▂▃▄▅▆▇█"))
    assert "17 estimates, 45 calibrated to fit: replay database-away --values lists each" in text
    assert "=  ended by a person at the hour that the scenario gives" in text
    assert " Writers to the store █" in text
    named = terminal_text(made_up(), width=100, unicode=True, colour=False, named="mine.toml")
    assert "replay mine.toml --values lists each" in named


def test_only_a_run_as_it_was_is_held_to_what_was_reported() -> None:
    """Throttles relaxed at 11:23, within 10 minutes, and all others that have a bound; a guard is meant to differ."""
    every = {each.name: each for each in judged(as_it_was())}
    assert every["throttles-relaxed"].within_s == 600
    assert all(each.held for each in every.values()), [each for each in every.values() if not each.held]
    assert f"{len(every)} of {len(every)} hours are as near" in shown(as_it_was())
    assert not judged(guarded())
    assert "as near to" not in shown(guarded())
    never = msgspec.structs.replace(made_up(), happened={"gone": 1800})
    assert "not leases-back (00:45, here never)" in shown(never).replace("\n", " ")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"), (0.12, "120 ms"), (0.0005, "0.5 ms"), (2.5, "2.5 s"), (59, "59 s"), (60, "1 min"), (100, "100 s"),
        (300, "5 min"), (599, "599 s"), (601, "10 min 1 s"), (4500, "1 h 15 min"), (3601, "1 h 1 s"), (86_400, "24 h"),
    ],
)  # fmt: skip
def test_a_value_is_told_exactly(seconds: float, words: str) -> None:
    """Two minutes are no hundred seconds: whoever sets a value anew begins with what it is."""
    assert exact(seconds) == words


def test_names_are_whole_where_there_is_room() -> None:
    """Up to 24 letters; the column is no wider than its longest name wants."""
    assert " Global tables' replicas █" in shown(as_it_was())


def test_a_phase_without_its_trouble_is_none_or_explained() -> None:
    """October 2025 with the lease clock: no lease is lost, so there is no storm, whatever the number of hosts."""
    text = shown(guarded())
    rows = {line[1:25].strip(): line for line in text.splitlines()}
    assert rows["lease storm"].endswith("none")
    assert rows["network backlog"].endswith("none")
    assert "unwinding throttles: nobody set a throttle;" in text
    assert "velocity: no decider for zones" in text
    assert "nobody set a throttle" not in shown(as_it_was())


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (Options(), "as it was"),
        (Options(operators=False), "as it was, nobody at the keyboard"),
        (Options(guards=frozenset(Guard), outage_s=9420), "with every guard, an outage of 2h37m forced"),
        (Options(guards=frozenset({Guard.FENCE, Guard.VELOCITY})), "with fence and velocity"),
        (Options(guards=frozenset(Guard) - {Guard.FENCE}), "with every guard but fence"),
    ],
)
def test_a_run_is_called_after_its_options(options: Options, name: str) -> None:
    """So that two outputs can't be mixed up."""
    assert called(options) == name


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (Options(), "as it was"),
        (Options(operators=False), "as it was, nobody acts"),
        (Options(guards=frozenset(Guard), outage_s=9420), "every guard"),
        (Options(guards=frozenset(Guard) - {Guard.FENCE}, outage_s=9420), "all but fence"),
        (Options(guards=frozenset({Guard.ADMISSION, Guard.NETWORK_THROTTLE})), "admission + network-throttle"),
        (Options(guards=frozenset({Guard.ADMISSION, Guard.NETWORK_THROTTLE, Guard.READINESS})), "3 guards"),
    ],
)
def test_a_short_name_fits_beside_a_bar(options: Options, name: str) -> None:
    """Its letter leads to the whole one."""
    assert brief(options) == name
