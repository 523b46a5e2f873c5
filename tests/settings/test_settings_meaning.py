"""What is allowed and surprises people, and what a file's shares come to in targets."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.traffic import limits
from fencepost.core.traffic.membership import Member, Rule, State
from fencepost.settings import judge
from fencepost.settings.core_settings import safety_settings
from fencepost.settings.meaning import Scale
from fencepost.settings.schema import Region, Safety, Target
from fencepost.settings.units import Rate

HEAD = """\
[region]
name = "eu-1"
[dns]
provider = "embedded"
domain = "example.test"
"""


def text(zones: dict[str, int], *, head: str = HEAD, pool: str = "", rest: str = "") -> str:
    rows = [
        f"{zone} = {[f'10.0.{index}.{n + 1}' for n in range(count)]}"
        for index, (zone, count) in enumerate(zones.items())
    ]
    return (
        f'{head}[pool.web.probe]\nurl = "http://:80/"\n{pool}[pool.web.targets]\n'
        + "\n".join(rows)
        + f'\n[[endpoint]]\nname = "api.example.test"\npool = "web"\n{rest}'
    )


def cautions(source: str, environ: dict[str, str] | None = None) -> list[str]:
    report = judge(source, "region.toml", environ or {})
    assert report.mistakes == ()
    return [str(caution).removeprefix("region.toml:") for caution in report.cautions]


THREE = {"a": 2, "b": 2, "c": 2}


def test_an_ordinary_region_is_quiet() -> None:
    """Three zones of two: nothing to say."""
    assert cautions(text(THREE)) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            text({"a": 3}),
            "1: warning: one zone has one checker, and a verdict takes two: "
            "nothing is ever taken out; name three zones",
        ),
        (
            text({"a": 3, "b": 3}),
            "1: warning: 2 zones have 2 checkers, and a verdict takes two: "
            "with one down nothing is taken out; name a third",
        ),
        (
            text({"a": 1}, head=HEAD.replace("[dns]", 'zones = ["a", "b", "c"]\n[dns]')),
            "7: warning: pool web has one target, which is never taken out however sick it is",
        ),
        (
            text({"a": 3}, head=HEAD.replace("[dns]", 'zones = ["a", "b", "c"]\n[dns]')),
            "7: warning: pool web has all its targets in zone a; if that zone goes, nothing is left to turn to",
        ),
        (
            text(THREE, head=HEAD + 'ttl = "10m"\n'),
            "6: warning: ttl 10m is over 5m: callers keep a dead address that long",
        ),
        (
            text(THREE, rest='ttl = "1h"\n'),
            "13: warning: endpoint api.example.test: ttl 1h is over 5m: callers keep a dead address that long",
        ),
        (
            text(
                THREE,
                rest='[pool.spare]\nprobe = "tcp://:1"\n[pool.spare.targets]\na = ["10.9.0.1"]\nb = ["10.9.0.2"]\n',
            ),
            "15: warning: no endpoint uses pool spare; its targets are probed and answer nobody",
        ),
        (
            text(THREE, head=HEAD + '[api]\nlisten = "api.example.test:5301"\n'),
            "7: warning: the API listens on api.example.test, an endpoint managed here: "
            "if that is broken, so is the way to mend it",
        ),
        (
            text(THREE, head=HEAD + 'listen = "0.0.0.0:53"\n').replace("10.0.1.2", "127.0.0.9"),
            "11: warning: 127.0.0.9 is a loopback address, and the server is open to other machines: "
            "there it means themselves",
        ),
    ],
)
def test_what_surprises_people_is_said_and_allowed(source: str, expected: str) -> None:
    """One caution each, with its line."""
    assert cautions(source) == [expected]


def test_cautions_of_a_real_provider() -> None:
    """Drills damage live records there, and it draws no address by weight."""
    real = HEAD.replace('"embedded"', '"rfc2136"\nserver = "192.0.2.53"\nkey = { env = "K" }').replace(
        "[dns]", "drills = true\n[dns]"
    )
    source = text(THREE, head=real).replace("'10.0.1.2'", '{ addr = "10.0.1.2", weight = 3 }')
    assert cautions(source, {"K": "hmac-sha256:k:c2VjcmV0"}) == [
        '3: warning: drills are allowed on a real provider ("rfc2136"), and they damage live records',
        "9: warning: 192.0.2.53:53 answers all addresses alike: weights of pool web count for the limits only; "
        'srv = "_http._tcp" at endpoint api.example.test has them in SRV records',
    ]


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_that_route_53_does_not_answer_by_are_said(weighted: bool) -> None:
    """Its plain record sets answer all addresses alike; only the owner's word makes weighted ones of them."""
    source = text(THREE, head=HEAD.replace('"embedded"', '"route53"')).replace(
        "'10.0.1.2'", '{ addr = "10.0.1.2", weight = 3 }'
    )
    said = (
        "6: warning: Route 53 answers all addresses alike: weights of pool web count for the limits only; "
        "weighted = true at endpoint api.example.test has it answer by weight, one address a question"
    )
    assert cautions(source + ("weighted = true\n" if weighted else "")) == ([] if weighted else [said])


def test_more_addresses_than_bind_takes_is_said_before_any_write() -> None:
    """BIND answers SERVFAIL to the 101st record of a type: the whole UPDATE, whatever else is in it, and for ever."""
    real = HEAD.replace('"embedded"', '"rfc2136"\nserver = "192.0.2.53"\nkey = { env = "K" }')
    said = {
        count: cautions(text({"a": count, "b": 1, "c": 1}, head=real), {"K": "hmac-sha256:k:c2VjcmV0"})
        for count in (98, 99)
    }
    assert said[98] == []
    assert said[99] == [
        "8: warning: pool web has 101 addresses of one family, and BIND takes 100 records of a type at a name: "
        "raise its max-records-per-type, or make two endpoints"
    ]


def region(source: str) -> Region:
    found = judge(source, "region.toml", {}).region
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("zones", "pool", "expected"),
    [
        (
            {"a": 1, "b": 1, "c": 1},
            "",
            "3 targets, 3 zones; automation takes out at most 1 (max_out), never leaves under 2",
        ),
        (
            {"a": 4, "b": 4, "c": 4},
            "",
            "12 targets, 3 zones; automation takes out at most 2 (max_out), never leaves under 6",
        ),
        (
            {"a": 100, "b": 100, "c": 100},
            "",
            "300 targets, 3 zones; automation takes out at most 60 (max_out), never leaves under 150",
        ),
        ({"a": 1}, "", "1 target, 1 zone; automation takes out none (never the last target)"),
        (
            {"a": 1, "b": 1},
            '[pool.web.safety]\nmin_in = "80%"\n',
            "2 targets, 2 zones; automation takes out none (min_in leaves no room: 2 of 2 must stay)",
        ),
        (
            {"a": 3, "b": 3},
            "[pool.web.safety]\nmin_count = 5\n",
            "6 targets, 2 zones; automation takes out at most 1 (min_in), never leaves under 5",
        ),
    ],
)
def test_shares_of_few_targets_are_said_in_targets(zones: dict[str, int], pool: str, expected: str) -> None:
    """20 % of three targets is one, since else automation could do nothing; of six, two."""
    (first, *_) = judge(text(zones, pool=pool), "region.toml", {}).meaning
    assert first == f"pool web   {expected}"


def test_the_budget_is_never_slower_than_one_target_in_five_minutes() -> None:
    """5 %/min of three targets would be 6 min 40 s for one; the limiter doesn't wait that long."""
    meaning = judge(text({"a": 1, "b": 1, "c": 1}), "region.toml", {}).meaning
    assert meaning[2].strip() == "removal budget 1 target, a new one every 5 min (never slower)"


def test_unequal_weights_are_said() -> None:
    """A count of targets is then a weight in disguise."""
    source = text(THREE).replace("'10.0.1.2'", '{ addr = "10.0.1.2", weight = 7 }')
    assert "one counts as its weight by the mean 2;" in judge(source, "region.toml", {}).meaning[0]


def test_how_old_a_target_must_be_is_the_files_word_and_a_pools_own_before_it() -> None:
    """Twenty seconds of a service's start are known to its owner; two zones' word is enough after three times that."""
    plain, own = "", "[pool.web.safety]\nready_age = '1m'\n"
    given = HEAD + "[safety]\nready_age = '5s'\n"
    found = [
        safety_settings(region(text(THREE, head=head, pool=pool)).pools[0].safety)
        for head, pool in ((HEAD, plain), (given, plain), (given, own))
    ]
    ages = [(each.ready_age_ns // 10**9, each.ready_wait_ns // 10**9) for each in found]
    assert ages == [(30, 90), (5, 90), (60, 180)]


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=40),
    st.integers(0, 100),
    st.integers(0, 100),
    st.integers(1, 5),
)
def test_what_is_said_is_what_the_limiter_does(weights: list[int], max_out: int, min_in: int, min_count: int) -> None:
    """Taking out equal targets one by one until the limiter objects gives the numbers that `check` prints."""
    if max_out == 0 or max_out + min_in > 100 or min_count > len(weights):
        return
    pool = msgspec.structs.replace(
        region(text(THREE)).pools[0],
        safety=Safety(
            max_out * 10_000, min_in * 10_000, min_count, 10_000 * min(max_out, 10), Rate(50_000, 60 * 10**9), 500_000
        ),
        targets=tuple(Target(f"10.0.0.{n + 1}", "a", weights[0], 0, 1) for n in range(len(weights))),
    )
    scale = Scale(pool)
    members = [Member(t.address, "a", State.IN, capacity=weights[0]) for t in pool.targets]
    pool_now = limits.standing(members)
    out = 0
    for member in members:
        said = limits.objection(member, pool_now, pool_now.capacity, False, False, scale.safety)
        if said in (Rule.MIN_IN, Rule.MAX_OUT, Rule.LAST_OF_FAMILY, Rule.BUCKET):
            break
        pool_now.remove(member)
        out += 1
    assert scale.out_at_most()[0] == out
    assert pool_now.in_count >= scale.least_in()
