"""``fencepost doctor``: each look's findings, the exit codes, the document, and the least policy."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from called import call
from dns_scene import marker, standing
from free_ports import free_port
from servers import DOMAIN, Served, embedded
from test_cli_prove_provider import region

from fencepost import __version__
from fencepost.adapters.store_postgresql.address import Address
from fencepost.assembly.doctor import Look
from fencepost.assembly.places import state_folder
from fencepost.cli.doctor import here, is_alone, there
from fencepost.cli.talk import Talk
from fencepost.core.fence import Foreign, Generation, Marker
from fencepost.core.instant import DAY, MINUTE, SECOND
from fencepost.core.record_set import content
from fencepost.core.store import Row
from fencepost.core.zone import Live
from fencepost.dev.sample import FILE
from fencepost.ports import Beat, Enacted
from fencepost.settings import Region, load

NOW = 1_800_000_000 * SECOND
API = f"api.{DOMAIN}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the module."""
    with embedded(tmp_path_factory.mktemp("server")) as running:
        yield running


def loaded(folder: Path, port: int = 5300) -> Region:
    """The region of that folder."""
    return load(region(folder, port) / "region.toml", {})


def beat(role: str = "enactor/a", **changes: object) -> Beat:
    """A fresh sign of life."""
    return msgspec.structs.replace(Beat(role, 1, __version__, "up", "", NOW), **changes)


def states(looks: Iterator[Look]) -> list[str]:
    """How each was found."""
    return [look.state for look in looks]


def test_on_a_server(tmp_path: Path, served: Served) -> None:
    """Provider read, negative TTL, owner, rights that only a write shows, ports; nothing written."""
    done = call("doctor", "--json", cwd=region(tmp_path, served.port))
    document = json.loads(done.stdout)
    assert document["schema"] == "fencepost.doctor/1"
    found = {(look["about"], look["state"]): look for look in document["looks"] if look["about"] != "clock"}
    assert "read with our credentials" in found["dns", "ok"]["text"]
    assert "believe it for 5 s (negative TTL" in found["ttl", "ok"]["text"]
    assert "fencepost prove" in found["rights", "unknown"]["hint"]
    assert "never ran" in found["store", "unknown"]["text"]
    assert not any(state == "attention" for _, state in found)
    assert done.returncode == 0, "all of it is on this machine, so an unkept clock is a note"
    words = call("doctor", cwd=tmp_path)
    assert "ok         dns" in words.stdout
    assert list(tmp_path.glob("*.db*")) == []


@pytest.mark.parametrize(("secret", "code", "said"), [("d3Jvbmc=", 2, "BADSIG"), ("", 3, "doesn't|refused|failed")])
def test_provider_that_refuses_or_is_away(tmp_path: Path, served: Served, secret: str, code: int, said: str) -> None:
    """A key it doesn't take: exit 2, with what to do; nobody there: exit 3. The other looks are still taken."""
    folder = region(tmp_path, served.port if secret else free_port())
    if secret:
        (folder / "tsig.key").write_text(f"hmac-sha256:fencepost-test:{secret}")
    done = call("doctor", "--json", cwd=folder)
    assert done.returncode == code
    (dns,) = [look for look in json.loads(done.stdout)["looks"] if look["about"] == "dns"]
    assert dns["state"] == "attention"
    assert any(word in dns["text"] for word in said.split("|"))
    assert dns["hint"]
    assert len(json.loads(done.stdout)["looks"]) > 5


def test_least_policy(tmp_path: Path) -> None:
    """--iam-policy prints what IAM takes, for Route 53; elsewhere exit 2 with what does apply."""
    text = (region(tmp_path, 1) / "region.toml").read_text()
    refused = call("doctor", "--iam-policy", cwd=tmp_path)
    assert refused.returncode == 2
    assert "update-policy" in refused.stderr
    assert "Google" not in refused.stderr
    lines = [line for line in text.splitlines() if not line.startswith(("server", "key"))]
    (tmp_path / "region.toml").write_text("\n".join(lines).replace('"rfc2136"', '"route53"'))
    done = call("doctor", "--iam-policy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    policy = json.loads(done.stdout)
    assert policy["Version"] == "2012-10-17"
    assert f"_fencepost.{API}" in done.stdout


def test_owners(tmp_path: Path) -> None:
    """Another's marker, records without one, another store under our owner, names no longer in the file."""
    found = loaded(tmp_path)
    ours = standing(API, 1, "192.0.2.1")
    assert states(there.look_at_owners(found, [ours], "ab12")) == ["ok"]
    theirs = Live(API, marker(1, content(["192.0.2.1"], 30), owner="us-2"), ("192.0.2.1",), (), 30)
    (look,) = there.look_at_owners(found, [theirs], "ab12")
    assert look.state == "attention"
    assert '"us-2"' in look.text
    assert "adopt" not in look.hint, "which refuses another owner's (moving-in.md)"
    assert states(there.look_at_owners(found, [Live(API, Foreign("", ((b"x",),)))], "ab12")) == ["attention"]
    (look,) = there.look_at_owners(found, [Live(API, None, ("192.0.2.1",), (), 30)], "ab12")
    assert (look.state, "adopt" in look.hint) == ("attention", True)
    asked = tuple(target.address for target in found.pools[0].targets)
    (look,) = there.look_at_owners(found, [Live(API, None, asked, (), 30)], "ab12")
    assert (look.state, "a start writes the marker" in look.text) == ("ok", True), "as `plan` says (moving-in.md)"
    (look,) = there.look_at_owners(found, [Live(API, other=("CNAME",))], "ab12")
    assert (look.state, f"{API} (CNAME)" in look.text, "adopt" in look.hint) == ("attention", True, False)
    (look,) = there.look_at_owners(found, [ours], "cd34")
    assert "another store" in look.text
    assert isinstance(ours.marker, Marker)
    value = content(["192.0.2.1"], 30)
    row = Row(API, ours.marker.generation, value, ours.marker.digest, "4")
    assert states(there.look_at_owners(found, [ours], "cd34", {API: row})) == ["ok"], "as after a move of the store"
    later = msgspec.structs.replace(row, generation=Generation(0, 2))
    assert states(there.look_at_owners(found, [ours], "cd34", {API: later})) == ["attention"]
    old = standing(f"old.{DOMAIN}", 1, "192.0.2.1")
    assert states(there.look_at_owners(found, [ours, old], "ab12")) == ["note", "ok"]


def test_rights() -> None:
    """Only a write shows whether we may: the last one on record says when it was known."""
    (look,) = there.look_at_rights({}, NOW)
    assert look.state == "unknown"
    wrote = Enacted(API, Generation(0, 3), "enactor/b", NOW - 3 * MINUTE, 1)
    (look,) = there.look_at_rights({API: wrote}, NOW)
    assert look == Look("ok", "rights", f"enactor/b wrote {API} 3 min ago; whether we still may, only a write shows")
    assert next(there.look_at_rights({API: wrote}, NOW + 8 * DAY)).hint


def test_versions_and_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A role of another version, or ahead of this machine's clock; old signs of life count for nothing."""
    assert states(here.look_at_versions([beat()], NOW)) == ["ok"]
    (look,) = here.look_at_versions([beat(version="0.0.9")], NOW)
    assert "enactor/a runs 0.0.9" in look.text
    assert states(here.look_at_versions([beat(version="0.0.9", at=NOW - DAY)], NOW)) == ["ok"]
    bad = (5, 16_000_000)
    for kernel, alone, first in (
        ((0, 500), False, "ok"), (bad, False, "attention"), (bad, True, "note"), ((-1, 0), False, "unknown"),
    ):  # fmt: skip
        monkeypatch.setattr(here, "kernel_clock", lambda kernel=kernel: kernel)
        assert states(here.look_at_clock([beat()], NOW, alone=alone)) == [first]
        ahead = beat(at=NOW + 12 * SECOND)
        assert states(here.look_at_clock([ahead], NOW, alone=alone)) == [first, "attention"]
        more = [msgspec.structs.replace(ahead, role=f"checker/{zone}") for zone in "abc"]
        assert states(here.look_at_clock([ahead, *more], NOW, alone=alone)) == [first, "attention"], (
            "one cause, one line"
        )
    monkeypatch.undo()
    state, error_us = here.kernel_clock()
    assert state >= -1
    assert error_us >= 0


@pytest.mark.parametrize(
    ("dsn", "here"),
    [
        ("postgresql://u@127.0.0.1/d", True),
        ("postgresql://u@[::1]:5433/d", True),
        ("host=localhost dbname=d", True),
        ("host=/var/run/postgresql dbname=d", True),
        ("host=127.0.0.1,192.0.2.9 dbname=d", False),
        ("host=localhost hostaddr=192.0.2.9 dbname=d", False),
        ("host=db.example dbname=d", False),
        ("dbname=d", False),
        ("port=none", False),
    ],
)
def test_which_databases_are_surely_here(dsn: str, here: bool) -> None:
    """PostgreSQL 15, 34.1.2: hostaddr is where it connects, several hosts are tried in turn, none may be $PGHOST's."""
    assert Address(dsn).is_here is here


@pytest.mark.parametrize(
    ("server", "store", "sample", "alone"),
    [
        ("127.0.0.1:5300", 'kind = "sqlite"', "", True),
        ("[::1]:5300", 'kind = "sqlite"', "", True),
        ("192.0.2.53:53", 'kind = "sqlite"', "", False),
        ("127.0.0.1:5300", 'kind = "postgresql"\ndsn = { env = "DSN" }', "", True),
        ("127.0.0.1:5300", 'kind = "postgresql"\ndsn = { env = "FAR" }', "", False),
        ("127.0.0.1:5300", 'kind = "postgresql"\ndsn = { env = "DSN" }', "bind postgresql\n", True),
        ("192.0.2.53:53", 'kind = "postgresql"\ndsn = { env = "DSN" }', "postgresql\n", False),
    ],
)
def test_whose_clock_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, store: str, sample: str, alone: bool
) -> None:
    """Only this machine's, where provider and store are on it: of a store elsewhere other hosts may have roles too.

    docs/operating/doctor.md; PostgreSQL set up by our own page listens on loopback, and was taken for one elsewhere.
    """
    path = region(tmp_path, 5300) / "region.toml"
    text = path.read_text().replace("127.0.0.1:5300", server)
    path.write_text(f"{text}\n[store]\n{store}\n")
    dsns = {"DSN": "postgresql://fencepost@127.0.0.1/fencepost", "FAR": "postgresql://fencepost@192.0.2.9/fencepost"}
    found = load(path, dsns)
    for name, dsn in dsns.items():
        monkeypatch.setenv(name, dsn)
    folder = state_folder(found)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(sample)
    assert is_alone(found) is alone


def test_who_waits_for_notify(tmp_path: Path) -> None:
    """Where [dns] notify says, or not; without it on ports that change."""
    path = region(tmp_path, 5300) / "region.toml"
    talk = Talk(load(path, {}), SECOND)
    assert states(there.look_at_notify(talk, [], NOW)) == ["unknown"]
    (look,) = there.look_at_notify(talk, [beat(notify="127.0.0.1:4711")], NOW)
    assert (look.state, "notify in [dns]" in look.hint) == ("note", True)
    text = path.read_text().replace("[pool", 'notify = { a = "127.0.0.1:5353" }\n[pool', 1)
    path.write_text(text)
    talk = Talk(load(path, {}), SECOND)
    assert states(there.look_at_notify(talk, [beat(notify="127.0.0.1:5353")], NOW)) == ["ok"]
    for others in (beat(notify="127.0.0.1:4711"), beat("planner", notify="127.0.0.1:4711")):
        (look,) = there.look_at_notify(talk, [others], NOW)
        assert (look.state, "zone a (127.0.0.1:5353)" in look.text) == ("note", True)


def test_disk_and_ports(tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room where it writes, though the folder isn't there yet; a port that somebody else has, and who."""
    (look,) = here.look_at_disk({"state": tmp_path / "not" / "yet"})
    assert look.state == "ok"
    assert str(tmp_path) in look.text
    monkeypatch.setattr(here, "DISK_LEAST_SHARE", 1.1)
    (look,) = here.look_at_disk({"state": tmp_path})
    assert look.state == "attention"
    assert "df -h" in look.hint
    found = loaded(tmp_path)
    place = msgspec.structs.replace(found.api.listen, port=served.port)
    taken = msgspec.structs.replace(found, api=msgspec.structs.replace(found.api, listen=place))
    (look,) = here.look_at_ports(taken, None, api_answers=False)
    assert look.state == "note"
    assert "is taken" in look.text
    assert states(here.look_at_ports(taken, None, api_answers=True)) == ["ok"]


def test_another_folders_region_of_the_same_name_is_not_taken_for_this_one(tmp_path: Path, served: Served) -> None:
    """docs/operating/doctor.md, ports: "its own, or whose". Two samples have one name and one owner, so that an API
    says both is not enough where it is known which processes are this folder's.
    """
    found = loaded(tmp_path)
    place = msgspec.structs.replace(found.api.listen, port=served.port)
    taken = msgspec.structs.replace(found, api=msgspec.structs.replace(found.api, listen=place))
    assert states(here.look_at_ports(taken, {os.getpid()}, api_answers=True)) == ["ok"]
    for ours in (set(), {1}):
        (look,) = here.look_at_ports(taken, ours, api_answers=True)
        assert look.state == "note"
        assert f"pid {os.getpid()}" in look.text
        assert f"it answers as {found.name}" in look.text


def test_file_with_mistakes(tmp_path: Path) -> None:
    """A file that was spoilt since it was loaded: said, with what still runs."""
    found = loaded(tmp_path)
    (tmp_path / "region.toml").write_text("[region]\n")
    (look,) = here.look_at_file(found)
    assert look.state == "attention"
    assert "what runs is what was loaded before" in look.text


def test_dynamodb_says_what_its_table_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its table's own findings: what is refused needs a person, a warning is a note."""
    from fencepost.adapters import store_dynamodb
    from fencepost.adapters.store_dynamodb import TableFinding
    from fencepost.assembly import doctor
    from fencepost.world.reference_store import ReferenceStore

    found = loaded(tmp_path)
    store = msgspec.structs.replace(found.store, kind="dynamodb", table="t", aws_region="eu-west-1")

    async def look_at_table(table: str, aws_region: str) -> list[TableFinding]:
        assert (table, aws_region) == ("t", "eu-west-1")
        return [
            TableFinding("refused", "replicas", "remove them"),
            TableFinding("warning", "w"),
            TableFinding("good", "g"),
        ]

    monkeypatch.setattr(store_dynamodb, "look_at_table", look_at_table)
    monkeypatch.setattr(doctor, "open_store", lambda _region: ReferenceStore("ab12cd34", lambda: "n", asyncio.sleep))
    looks = asyncio.run(doctor.look_at_store(msgspec.structs.replace(found, store=store)))
    assert [look.state for look in looks] == ["ok", "attention", "note", "ok"]
    assert looks[1].hint == "remove them"
