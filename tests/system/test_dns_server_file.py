"""The domain's file: what is answered NOERROR is on disk, and what is wrong with a file is said clearly."""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import dns.message
import dns.query
import dns.rcode
import dns.update
import pytest
from dns_server_running import DOMAIN, HERE, new_update, running, settings_in

from fencepost.ports import Misconfigured, PortError, Unavailable
from fencepost.roles.dns_server import server as server_module
from fencepost.roles.dns_server.file import DomainFile

CHILD = """
import asyncio, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from dns_server_running import settings_in
from fencepost.roles.dns_server import DnsServer
async def main():
    server = DnsServer(settings_in(Path(sys.argv[1])))
    await server.start()
    print(server.port, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def test_what_was_answered_noerror_survives_a_kill(tmp_path: Path) -> None:
    """October 2025 incident, in small: a generation must not fall because the server died just after its answer."""
    command = [sys.executable, "-c", CHILD, str(tmp_path), str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        port = int(child.stdout.readline())
        for number in range(5):
            update = new_update()
            update.replace("api", 30, "A", f"192.0.2.{number}")
            assert dns.query.tcp(update, HERE, timeout=10, port=port).rcode() == dns.rcode.NOERROR
        os.kill(child.pid, signal.SIGKILL)
    with running(settings_in(tmp_path)) as server:
        assert server.values(f"api.{DOMAIN}") == ["192.0.2.4"]
        assert server.serial() == 6


def test_every_commit_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's own documentation: in WAL mode only FULL keeps a commit through a power cut."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def watched(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        opened.append(connect(*args, **kwargs))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", watched)
    file = DomainFile(tmp_path / "domain.db")
    (db,) = opened
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)
    file.close()


def _fails(path: Path, wanted: type[PortError], *words: str) -> None:
    with pytest.raises(wanted) as caught, running(settings_in(path)):
        pass
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.hint
    assert str(path) in caught.value.where


def _made(path: Path) -> Path:
    """A good file with something in it."""
    with running(settings_in(path)) as server:
        update = new_update()
        for index in range(300):
            update.add(f"host{index}", 30, "A", "192.0.2.1")
        assert server.update(update, tcp=True) == "NOERROR"
    return path / "domain.db"


def test_a_second_server_on_the_same_file_is_refused(tmp_path: Path) -> None:
    """One process owns the file: two would each serve what the other doesn't know of."""
    with running(settings_in(tmp_path)):
        _fails(tmp_path, Misconfigured, "another process owns")
    _made(tmp_path)


def test_a_file_of_something_else_is_not_touched(tmp_path: Path) -> None:
    """Text, a foreign database, a newer version of ours: each said, none changed."""
    path = tmp_path / "domain.db"
    path.write_bytes(b"not a database, but long enough to look at" * 40)
    before = path.read_bytes()
    _fails(tmp_path, Misconfigured, "damaged or something else")
    assert path.read_bytes() == before
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    _fails(tmp_path, Misconfigured, "no domain's file")
    path.unlink()
    _made(tmp_path)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 2")
    db.close()
    _fails(tmp_path, Misconfigured, "version 2", "version 1 is wanted")


@pytest.mark.parametrize("damage", ["middle", "half", "rows", "serial"])
def test_a_damaged_file_is_noticed_at_the_start(tmp_path: Path, damage: str) -> None:
    """A server that starts on half its records would take endpoints away: it must not start."""
    path = _made(tmp_path)
    if damage in ("rows", "serial"):
        change = "SET rdatas = X'FFFF00'" if damage == "rows" else "SET name = X'0178' WHERE type = 6"
        with sqlite3.connect(path) as db:
            db.execute(f"UPDATE record_set {change}")
        db.close()
    else:
        content = bytearray(path.read_bytes())
        if damage == "half":
            content = content[: len(content) // 2]
        else:
            content[4096:] = bytes(b ^ 0x55 for b in content[4096:])
        path.write_bytes(content)
    _fails(tmp_path, Misconfigured, "damaged")


def test_a_directory_that_is_missing_and_a_read_only_file_are_said(tmp_path: Path) -> None:
    """Misconfigured: no retry mends these."""
    with pytest.raises(Misconfigured) as caught, running(settings_in(tmp_path, data=str(tmp_path / "no" / "d.db"))):
        pass
    assert "can't open" in str(caught.value)
    path = _made(tmp_path)
    path.chmod(0o444)
    if os.access(path, os.W_OK):  # root may write anyway: a file that can't be written at all stands in
        path.unlink()
        path.mkdir()
    _fails(tmp_path, Misconfigured, "can't write")


def test_a_full_disk_refuses_the_update_and_keeps_answering(tmp_path: Path) -> None:
    """SERVFAIL, nothing changed, and later updates work when there is room again; the limit is SQLite's own here."""
    with running(settings_in(tmp_path)) as server:
        file = server.server.handler._file
        (pages,) = file._db.execute("PRAGMA page_count").fetchone()
        file._db.execute(f"PRAGMA max_page_count = {pages}")
        update = new_update()
        for index in range(500):
            update.add(f"host{index}", 30, "A", "192.0.2.1")
        assert server.update(update, tcp=True) == "SERVFAIL"
        assert server.server.counters.updates == {"SERVFAIL": 1}
        assert server.ask(f"host1.{DOMAIN}").rcode() == dns.rcode.NXDOMAIN
        assert server.serial() == 1
        file._db.execute("PRAGMA max_page_count = 100000")
        assert server.update(update, tcp=True) == "NOERROR"
    with running(settings_in(tmp_path)) as server:
        assert server.values(f"host499.{DOMAIN}") == ["192.0.2.1"]


def test_the_kinds_of_errors_of_sqlite_are_told_apart(tmp_path: Path) -> None:
    """What may pass by itself or when space is freed is Unavailable; what a person must mend is Misconfigured."""
    from fencepost.roles.dns_server.file import _told

    said = "a full and readonly text, unable to open, says nothing"
    for kind, code, wanted, words in (
        (sqlite3.OperationalError, sqlite3.SQLITE_FULL, Unavailable, "no space for"),
        (sqlite3.OperationalError, sqlite3.SQLITE_READONLY_DBMOVED, Misconfigured, "can't write"),
        (sqlite3.OperationalError, sqlite3.SQLITE_CANTOPEN, Misconfigured, "can't write"),
        (sqlite3.OperationalError, sqlite3.SQLITE_IOERR_WRITE, Unavailable, "can't be used now"),
        (sqlite3.OperationalError, None, Unavailable, "can't be used now"),
        (sqlite3.DatabaseError, sqlite3.SQLITE_CORRUPT, Misconfigured, "damaged"),
    ):
        error = kind(said)
        if code is not None:
            error.sqlite_errorcode = code
        with pytest.raises(wanted, match=words), _told(tmp_path):
            raise error


def test_a_changed_setting_takes_effect_and_other_domains_wait_in_the_file(tmp_path: Path) -> None:
    """negative_ttl_s is put into the SOA at the start; a domain left out of the settings is kept for its return."""
    with running(settings_in(tmp_path, domains=("example.test", "other.test"))) as server:
        update = new_update("other.test.")
        update.add("x", 30, "A", "192.0.2.1")
        assert server.update(update) == "NOERROR"
    with running(settings_in(tmp_path, negative_ttl_s=7)) as server:
        assert server.ask(f"nope.{DOMAIN}").authority[0].ttl == 7
        assert server.serial() == 2
        assert server.ask("x.other.test").rcode() == dns.rcode.REFUSED
    with running(settings_in(tmp_path, domains=("other.test",))) as server:
        assert server.values("x.other.test") == ["192.0.2.1"]


def test_the_file_can_be_copied_while_the_server_runs(tmp_path: Path) -> None:
    """SQLite's backup works beside us, so a person can save and look at the domain."""
    with running(settings_in(tmp_path)) as server:
        update = new_update()
        update.add("api", 30, "A", "192.0.2.1")
        assert server.update(update) == "NOERROR"
        saved = tmp_path / "saved"
        saved.mkdir()
        source, copy = sqlite3.connect(tmp_path / "domain.db"), sqlite3.connect(saved / "domain.db")
        source.backup(copy)
        source.close()
        copy.close()
        shutil.copy(saved / "domain.db", saved / "other.db")
    with running(settings_in(saved)) as server:
        assert server.values(f"api.{DOMAIN}") == ["192.0.2.1"]


@pytest.mark.parametrize(("changed", "words"), [
    ({"listen": "localhost:53"}, "not an address and port"),
    ({"listen": "127.0.0.1"}, "not an address and port"),
    ({"keys": {"k": ("hmac-md5", "AAAA")}}, "unknown TSIG algorithm"),
    ({"keys": {"k": ("hmac-sha256", "not base64!")}}, "isn't base64"),
    ({"domains": ()}, "no domain"),
    ({"domains": ("a..b",)}, "label"),
    ({"transfer": ("everyone",)}, "not an address"),
    ({"notify": ("somewhere",)}, "not an address and port"),
])  # fmt: skip
def test_settings_that_can_not_work_are_refused_with_a_hint(
    tmp_path: Path, changed: dict[str, object], words: str
) -> None:
    """Misconfigured, each with what to write instead; a secret is never printed."""
    with pytest.raises(Misconfigured, match=words) as caught, running(settings_in(tmp_path, **changed)):
        pass
    assert "base64!" not in str(caught.value)


def test_a_taken_port_is_said(tmp_path: Path) -> None:
    """Misconfigured, with the port."""
    with running(settings_in(tmp_path)) as server:
        other = tmp_path / "other"
        other.mkdir()
        with (
            pytest.raises(Misconfigured, match=str(server.port)),
            running(settings_in(other, listen=f"{HERE}:{server.port}")),
        ):
            pass


def test_one_change_writes_as_little_in_a_large_domain_as_in_a_small_one(tmp_path: Path) -> None:
    """A plan of one change costs one write: rows written are counted, and other names' kept answers stay."""
    written = []
    for names in (10, 3_000):
        where = tmp_path / str(names)
        where.mkdir()
        with running(settings_in(where)) as server:
            for start in range(0, names, 500):
                update = new_update()
                for index in range(start, min(names, start + 500)):
                    update.add(f"host{index}", 30, "A", "192.0.2.1")
                assert server.update(update, tcp=True) == "NOERROR"
            kept = server.server.handler._kept.by_key
            for index in (1, 2):
                server.ask(f"host{index}.{DOMAIN}")
            before = dict(kept)
            assert len(before) == 2
            db = server.server.handler._file._db
            changes = db.total_changes
            update = new_update()
            update.replace("host1", 30, "A", "192.0.2.2")
            assert server.update(update) == "NOERROR"
            written.append(db.total_changes - changes)
            assert [answer for key, answer in kept.items() if before[key] is answer] == list(kept.values())
            assert len(kept) == 1
    assert written[0] == written[1] < 10


def test_it_listens_on_ipv6_too(tmp_path: Path) -> None:
    """UDP and TCP on [::1], the name server's own record an AAAA."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            sock.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 here")
    with running(settings_in(tmp_path, listen="[::1]:0")) as server:
        query = dns.message.make_query(f"ns.{DOMAIN}", "AAAA")
        for send in (dns.query.udp, dns.query.tcp):
            assert str(send(query, "::1", timeout=5, port=server.port).answer[0][0]) == "::1"


ENDS = [("", "-wal", "-shm"), ("",), ("-wal",), ("-wal", "-shm"), ("", "-wal", "-shm", ".lock")]


def _added(name: str) -> dns.update.UpdateMessage:
    update = new_update()
    update.add(name, 30, "A", "192.0.2.1")
    return update


@pytest.mark.parametrize("ends", ENDS)
def test_a_file_removed_under_the_server_is_written_anew_before_an_update_is_answered(
    tmp_path: Path, ends: tuple[str, ...]
) -> None:
    """SQLite goes on in an unlinked file and says OK; at the next start a generation would have fallen."""
    with running(settings_in(tmp_path, domains=("example.test", "other.test"))):
        pass
    path = tmp_path / "domain.db"
    with running(settings_in(tmp_path)) as server:
        assert server.update(_added("before")) == "NOERROR"
        for end in ends:
            path.with_name(path.name + end).unlink()
        assert server.update(_added("after")) == "NOERROR"
        copied = tmp_path / "copied"  # what a kill would leave
        copied.mkdir()
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", copied / f"domain.db{end}")
        assert server.update(_added("later")) == "NOERROR"
        _fails(tmp_path, Misconfigured, "another process owns")
    for folder, names in ((copied, ("before", "after")), (tmp_path, ("before", "after", "later"))):
        with running(settings_in(folder, domains=("example.test", "other.test"))) as server:
            for name in names:
                assert server.values(f"{name}.{DOMAIN}") == ["192.0.2.1"]
            assert server.serial() == 1 + len(names)
            assert server.ask("other.test", "SOA").rcode() == dns.rcode.NOERROR


def test_a_file_removed_while_nothing_is_written_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may end before another update comes; what was put in the file's place is kept."""
    path = tmp_path / "domain.db"
    monkeypatch.setattr(server_module, "LOOK_EACH_S", 0.01)
    with running(settings_in(tmp_path)) as server:
        assert server.update(_added("before")) == "NOERROR"
        path.unlink()
        path.write_bytes(b"an older copy, say")
        for _ in range(1_000):
            if path.with_name("domain.db.replaced").exists() and path.stat().st_size > 1_000:
                break
            time.sleep(0.01)
    assert path.with_name("domain.db.replaced").read_bytes() == b"an older copy, say"
    with running(settings_in(tmp_path)) as server:
        assert server.values(f"before.{DOMAIN}") == ["192.0.2.1"]


def test_updates_fail_as_long_as_a_removed_file_can_not_be_written_anew(tmp_path: Path) -> None:
    """Its directory is gone: SERVFAIL, nothing changed, answers go on; and NOERROR once it is back."""
    there = tmp_path / "there"
    there.mkdir()
    with running(settings_in(there)) as server:
        assert server.update(_added("before")) == "NOERROR"
        there.rename(tmp_path / "away")
        assert server.update(_added("after")) == "SERVFAIL"
        assert server.values(f"before.{DOMAIN}") == ["192.0.2.1"]
        assert server.values(f"after.{DOMAIN}") == []
        there.mkdir()
        assert server.update(_added("after")) == "NOERROR"
    with running(settings_in(there)) as server:
        assert server.values(f"before.{DOMAIN}") == ["192.0.2.1"]
        assert server.values(f"after.{DOMAIN}") == ["192.0.2.1"]
