"""``fencepost import`` of what never ends, or would take all memory: refused in words, and soon."""

import itertools
import os
import threading
from collections.abc import Callable
from pathlib import Path

import dns.name
import dns.rdata
import dns.zone
import pytest
from called import call
from imported import DOMAIN

from fencepost.cli.import_live import transfer
from fencepost.core.instant import SECOND
from fencepost.importing import Book, octodns, zonefile
from fencepost.importing.records import Source
from fencepost.ports import Misconfigured, Unavailable
from fencepost.settings.schema import HostPort

SOA = "$ORIGIN example.com.\n@ 60 SOA ns a 1 1 1 1 1\n"


def read(reader: Callable[[Book, Path], object], file: str, text: str, folder: Path) -> Source:
    """Read one file."""
    (folder / file).write_text(text)
    book = Book()
    reader(book, folder / file)
    return book.source()


@pytest.mark.parametrize("kind", ["octodns", "zonefile", "route53-json"])
def test_a_device_is_refused_and_not_read_until_memory_is_gone(kind: str, tmp_path: Path) -> None:
    """/dev/zero never ends."""
    done = call("import", kind, "/dev/zero", "--domain", DOMAIN, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "/dev/zero: is a device" in done.stderr


def test_merges_of_merges_are_followed_once(tmp_path: Path) -> None:
    """Fifteen lines, each of which merges the one before ten times over: followed each time, a million years."""
    text = "m0: &m0 {type: A, values: [192.0.2.1, 192.0.2.2]}\n"
    text += "".join(f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 10)}], ttl: {n}}}\n" for n in range(1, 16))
    found = read(octodns.read, f"{DOMAIN}.yaml", text, tmp_path)
    assert [(each.name, each.ttl_a) for each in found.sets if each.name.startswith("m15")] == [(f"m15.{DOMAIN}", 15)]


def test_a_line_that_asks_for_millions_of_records_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """$GENERATE makes as many as it is told to."""
    monkeypatch.setattr("fencepost.importing.zonefile.RECORDS_MOST", 100)
    with pytest.raises(Misconfigured, match="more than 100 records") as caught:
        read(zonefile.read, "zone", f"{SOA}$GENERATE 1-20000000 h$ A 192.0.2.1\n", tmp_path)
    assert ":3" in caught.value.where


def test_a_transfer_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 5936: a transfer ends with the SOA that it begins with. A server that never sends it would fill memory."""

    def endless(_host: str, zone: dns.zone.Zone, *_rest: object, **_more: object) -> None:
        with zone.writer(replacement=True) as transaction:
            for number in itertools.count():
                found = dns.rdata.from_text("IN", "A", "192.0.2.1")
                transaction.add(dns.name.from_text(f"h{number}.{DOMAIN}."), 60, found)
                assert number < 1000

    monkeypatch.setattr("fencepost.importing.zonefile.RECORDS_MOST", 100)
    monkeypatch.setattr("dns.query.inbound_xfr", endless)
    with pytest.raises(Unavailable, match="more than 100 records"):
        transfer(Book(), DOMAIN, HostPort("127.0.0.1", 53), None, SECOND)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("$INCLUDE /dev/zero", "$INCLUDE /dev/zero is no regular file"),
        ('$include "/dev/zero" sub', "$INCLUDE /dev/zero is no regular file"),
        ("$INCLUDE pipe", "$INCLUDE pipe is no regular file"),
        ("$INCLUDE .", "$INCLUDE . is no regular file"),
        ("$INCLUDE zone", "$INCLUDE zone goes round in circles"),
        ("$INCLUDE link", "$INCLUDE link goes round in circles"),
        ("$INCLUDE back", "$INCLUDE zone goes round in circles"),
        ("$INCLUDE d0", "more than 1000 files are included in all"),
        ("$INCLUDE missing", "missing: can't be read: no such file"),
        ("$INCLUDE binary", "a file that it includes is not UTF-8"),
    ],
)
def test_what_is_included_is_looked_at_first(line: str, says: str, tmp_path: Path) -> None:
    """RFC 1035 section 5.1 names a file; nothing says that it is one, ends, or isn't where one has come from."""
    (tmp_path / "zone").write_text(f"{SOA}www A 192.0.2.1\n{line}\n")
    (tmp_path / "back").write_text("$INCLUDE zone\n")
    (tmp_path / "link").symlink_to("zone")
    (tmp_path / "binary").write_bytes(b"\xff\n")
    os.mkfifo(tmp_path / "pipe")
    for depth in range(30):
        (tmp_path / f"d{depth}").write_text(f"$INCLUDE d{depth + 1}\n" * 2)
    (tmp_path / "d30").write_text("")
    done = call("import", "zonefile", "zone", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    if says.startswith("$INCLUDE"):
        assert ("back:1" if line.endswith("back") else "zone:4") in done.stderr


def test_more_is_included_than_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All files together have a bound, each as often as it is included; so has what comes through a pipe."""
    monkeypatch.setattr("fencepost.importing.includes.BYTES_MOST", 800)
    included = tmp_path / "half"
    included.write_text("w A 192.0.2.1\n" * 30)
    with pytest.raises(Misconfigured, match="more than 800 bytes are included in all"):
        read(zonefile.read, "zone", f"{SOA}$INCLUDE {included}\n$INCLUDE {included}\n", tmp_path)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"; " * 600,))
    writer.start()
    with pytest.raises(Misconfigured, match="is too large"):
        zonefile.read(Book(), tmp_path / "pipe")
    writer.join()


def test_what_is_included_is_read(tmp_path: Path) -> None:
    """Twice, from a file and from a pipe, under another origin the second time."""
    (tmp_path / "more").write_text("www 60 A 192.0.2.1\n")
    text = f"{SOA}$INCLUDE {tmp_path}/more\n$INCLUDE {tmp_path}/more eu\n"
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(text,))
    writer.start()
    book = Book()
    zonefile.read(book, tmp_path / "pipe")
    writer.join()
    for source in (book.source(), read(zonefile.read, "zone", text, tmp_path)):
        assert sorted(each.name for each in source.sets) == [f"www.eu.{DOMAIN}", f"www.{DOMAIN}"]
