"""Whatever stands in the file, judging it ends soon, in a report: no traceback, no hang, nothing loaded by half."""

import random
import time
from pathlib import Path

import pytest

from fencepost.settings import SettingsError, decode, encode, judge, load
from fencepost.settings.initial import INITIAL

SAMPLE = (Path(__file__).parents[2] / "src/fencepost/dev/sample.toml").read_text()
RICH = """\
region = { name = "eu-1", zones = ["a", "b", "c"] }
dns.provider = "rfc2136"
dns.domain = ["example.test", "bücher.test"]
dns.server = "[2001:db8::53]:53"
dns.key = { env = "K" }
[checkers]
canary = ["http://192.0.2.200/x", "tcp://[2001:db8::2]:1"]
[pool."web".safety]
min_in = "70%"
rate = "1.5%/h"
[pool.web]
probe = { url = "tcp://:80", interval = "2s", timeout = "1s", fall = 2 }
capacity = "http://:5302/capacity"
targets.a = [
  "192.0.2.1", # one
  { addr = "2001:db8::1", weight = 2, port = 81 },
]
targets.b = [{ addr = '192.0.2.2', port = 1 }]
[[endpoint]]
name = "*.bücher.test"
pool = "web"
ttl = "1m"
records = ["A", "AAAA"]
"""
NASTY = [
    *[
        "[]",
        "{}",
        "[[]]",
        '""',
        "''",
        '""""""',
        "nan",
        "inf",
        "-0",
        "true",
        "1e308",
        "0x" + "f" * 5000,
        "9" * 4000,
        "9" * 9999,
    ],
    *[
        "-9223372036854775809",
        "1979-05-27",
        "07:32:00",
        '"\\u0000"',
        '"\\U0010FFFF"',
        '"\\r\\n"',
        "'\x7f'",
        '"' + "x" * 9999 + '"',
    ],
    *[
        "[" * 500 + "]" * 500,
        "{a=" * 60 + "1" + "}" * 60,
        "[{a=[{a=[{a=1}]}]}]",
        '"http://[::1"',
        '"http://:99999/"',
        '"tcp://x:y"',
    ],
    *[
        '"٣s"',
        '"1e9d"',
        '"999999999d"',
        '"100%"',
        '"0%"',
        '"1%/s"',
        '{ file = "/" }',
        '{ file = "\\u0000" }',
        '{ env = "PATH" }',
    ],
    *[
        '"::ffff:1.2.3.4"',
        '"fe80::1%1"',
        '"1.2.3.4/8"',
        '"xn--a"',
        '"xn--.test"',
        '"..."',
        '"*.*"',
        '"[::1]:0"',
        "a.b.c = 1",
    ],
]
KEYS = [
    "region",
    "dns",
    "pool",
    "endpoint",
    "pool.web",
    "pool.web.targets",
    "checkers",
    "a.b",
    '""',
    "'ü'",
    "targets.a",
]


def mutated(text: str, rng: random.Random) -> str:
    """Spoil a good file in one to four ways."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(lines))
        match rng.randrange(9):
            case 0:
                del lines[at]
            case 1:
                lines.insert(rng.randrange(len(lines) + 1), lines[at])
            case 2:
                other = rng.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case 3 | 4:
                key, sep, _ = lines[at].partition("=")
                lines[at] = f"{key}= {rng.choice(NASTY)}" if sep else lines[at]
            case 5:
                lines.insert(at, f"{rng.choice(KEYS)} = {rng.choice(NASTY)}")
            case 6:
                lines.insert(at, rng.choice(["[{}]", "[[{}]]", "[{}.x]"]).format(rng.choice(KEYS)))
            case 7:
                line = lines[at]
                cut = rng.randrange(len(line) + 1)
                lines[at] = line[:cut] + chr(rng.choice([rng.randrange(128), rng.randrange(0xD800)])) + line[cut + 1 :]
            case _:
                lines[at] = lines[at].replace(rng.choice('"=[]{}.,%s#'), rng.choice('"=[]{}.,%s#'))
        lines = lines or [""]
    return "\n".join(lines)


@pytest.mark.parametrize("part", range(4))
def test_ten_thousand_spoilt_files_each_end_in_a_report(part: int) -> None:
    """Either a region that goes to JSON and back, or mistakes with a line in the file and a text on one line."""
    rng = random.Random(part)
    loaded = 0
    slowest = 0.0
    for _ in range(2500):
        text = mutated(rng.choice([SAMPLE, INITIAL, RICH]), rng)
        before = time.process_time()
        report = judge(text, "region.toml", {"K": "hmac-sha256:k:c2VjcmV0"})
        slowest = max(slowest, time.process_time() - before)
        assert (report.region is None) == bool(report.mistakes)
        for mistake in report.mistakes + report.cautions:
            assert 1 <= mistake.line <= text.count("\n") + 1
            assert mistake.text.isprintable()
            assert len(mistake.text) < 2000
        if report.region is not None:
            loaded += 1
            assert decode(encode(report.region)) == report.region
            assert all(pool.targets for pool in report.region.pools)
            assert all(endpoint.records and endpoint.domain for endpoint in report.region.endpoints)
    assert slowest < 2  # seconds of processor time for one file; most take 0.001
    assert 100 < loaded < 2400  # the spoiling spoils, and not everything


def test_random_bytes_are_no_file(tmp_path: Path) -> None:
    """Not UTF-8, or not TOML: refused by the same exception."""
    rng = random.Random(1)
    path = tmp_path / "region.toml"
    for size in range(1, 200):
        path.write_bytes(rng.randbytes(size))
        with pytest.raises(SettingsError):
            load(path, {})


def test_the_rich_file_of_this_test_loads() -> None:
    """Else the mutations would all start from a broken file."""
    report = judge(RICH, "region.toml", {"K": "hmac-sha256:k:c2VjcmV0"})
    assert report.mistakes == ()
    assert report.region is not None
    assert report.region.endpoints[0].domain == "xn--bcher-kva.test"


def test_a_file_that_is_wrong_everywhere_ends_soon() -> None:
    """A thousand mistakes are said, with the nearest right word; more would take long and help nobody."""
    pools = "".join(f'[pool.p{n}]\nprobe = "tcp://:1"\n[pool.p{n}.targets]\na = ["10.0.0.1"]\n' for n in range(300))
    text = INITIAL + pools + '[[endpoint]]\nname = "x.example.com"\npool = "pp"\n' * 20_000
    before = time.process_time()
    report = judge(text, "region.toml", {})
    assert time.process_time() - before < 20
    assert len(report.mistakes) == 1000
    assert report.mistakes[-1].text == "and more; mend those above first"
