"""The reference page names every key with the default that holds, and no key that doesn't exist."""

import re
from pathlib import Path

import pytest

from fencepost.adapters.dns_signature import SIGNATURE_BYTES_MAX
from fencepost.adapters.dns_update import pack_update
from fencepost.core.fence import Generation, Hold, Marker
from fencepost.core.record_set import Content, content
from fencepost.core.service import hosts_of, service_of
from fencepost.core.zone import Change, Live
from fencepost.settings import judge
from fencepost.settings.keys import MUST, TABLES
from fencepost.settings.schema import Endpoint
from fencepost.settings.sizes import MESSAGE_MAX, update_bytes

PAGE = (Path(__file__).parents[2] / "docs/operating/settings.md").read_text()
ROW = re.compile(r"^\| `(\w+)` \| (.*?) ?\| (.*) \|$", re.MULTILINE)


def section(table: str) -> dict[str, tuple[str, str]]:
    """Give the rows of a table's section: key -> default, description."""
    heading = {"target": "[pool.NAME.targets]", "endpoint": "[[endpoint]]", "pool.NAME.safety": "[safety]"}
    start = PAGE.index(f"\n## `{heading.get(table, f'[{table}]')}`\n")
    end = PAGE.find("\n## ", start + 1)
    return {name: (default, what) for name, default, what in ROW.findall(PAGE[start:end])}


@pytest.mark.parametrize("table", TABLES)
def test_each_key_is_documented_with_its_default(table: str) -> None:
    """Datasette's habit: a test reads the page, so it can't drift."""
    rows = section(table)
    assert list(rows) == [key.name for key in TABLES[table]]
    for key in TABLES[table]:
        default, what = rows[key.name]
        assert what
        if key.example or any(key.name in must for (at, _), must in MUST.items() if at == table):
            assert default == "must"
        elif key.default not in (None, (), 0) or isinstance(key.default, bool):
            written = f'"{key.default}"' if isinstance(key.default, str) else str(key.default).lower()
            assert default == f"`{written}`"
        else:
            assert default
            assert not default.startswith("`")


def test_each_section_of_a_table_is_one() -> None:
    """A heading for a table that doesn't exist would send people looking."""
    found = set(re.findall(r"^## `\[+(.*?)\]+`$", PAGE, re.MULTILINE))
    assert found == (set(TABLES) - {"target", "pool.NAME.safety"}) | {"pool.NAME.targets"}


def test_the_size_of_an_endpoint_is_as_documented() -> None:
    """About 1,400 IPv4 addresses fit one UPDATE."""
    endpoint = Endpoint("api.example.com", "example.com", "web", 30, ("A",), 1)
    assert update_bytes(endpoint, 1400, 0) <= MESSAGE_MAX < update_bytes(endpoint, 1450, 0)
    assert "about 1,400 IPv4 addresses" in PAGE


def test_the_page_shows_what_check_says() -> None:
    """The transcript at its top is of texts that exist."""
    text = (
        '[region]\nname="x"\n[dns]\nprovider="embedded"\ndomain="x.test"\n[safety]\nmax_out = "20%"\nmin_in = "90%"\n'
    )
    text += '[pool.web.probe]\nurl="http://:1/"\nintervall = "1s"\n[pool.web.targets]\na = ["127.0.2.1", "127.0.2.1"]\n'
    shown = re.sub(r"line \d+|toml:\d+", "", PAGE)
    for mistake in judge(text, "region.toml", {}).mistakes:
        assert re.sub(r"line \d+", "", mistake.text) in shown


@pytest.mark.parametrize("name", ["api.example.com", "*.example.com", ".".join(["a" * 57] * 4) + ".com"])
@pytest.mark.parametrize(
    ("v4", "v6", "srv"),
    [(1, 0, ""), (300, 0, ""), (0, 300, ""), (250, 250, "")]
    + [(v4, v6, "_xmpp-client._tcp") for v4, v6 in ((1, 0), (50, 0), (0, 50), (30, 20))],
)
def test_the_size_is_never_less_than_what_the_adapter_sends(name: str, v4: int, v6: int, srv: str) -> None:
    """A set replaced by a wholly different one, weights and a hold in both markers: the estimate holds all of it.

    With SRV records the old ones are also required, as where a marker was deleted by hand.
    """
    hold = Hold("rollback", 4_000_000_000, 4_000_000_000)
    markers, sets = [], []
    for net in (10, 20):
        weights = {f"{net}.0.{n // 250}.{n % 250}": n % 255 + 1 for n in range(v4)}
        weights |= {f"{net}::{n:x}": 1 for n in range(v6)}
        sets.append(content(weights, 30, srv, {each: number % 9 + 1 for number, each in enumerate(weights)}))
        most = 4_000_000_000
        markers.append(Marker("o" * 63, "beef", Generation(most, most), "0" * 16, most, hold, sets[-1]))
    old, new = sets
    seen = Live(name, markers[0], old.a, old.aaaa)
    families = "4" * (v4 > 0) + "6" * (v6 > 0)
    domain = "com" if name.startswith("a" * 9) else "example.com"
    endpoint = Endpoint(name, "com", "web", 30, ("A", "AAAA"), 1, srv=srv)
    for stood in (seen, beside(seen, old)):
        sent = pack_update(1, domain, (Change(name, stood, markers[1], new, families),))
        assert len(sent) + SIGNATURE_BYTES_MAX <= update_bytes(endpoint, v4, v6)


def beside(seen: Live, value: Content) -> Live:
    """What is left of a marker that was deleted by hand."""
    service = service_of(seen.name, value)
    services = (service,) if service is not None else ()
    return Live(seen.name, None, seen.a, seen.aaaa, 30, (), services, hosts_of(value))
