"""What can't work where it is put is refused at load, with what to write instead."""

import os
from pathlib import Path

import pytest
from test_settings_refused import BASE

from fencepost.settings import judge


def said(text: str, path: str = "region.toml") -> list[str]:
    """The mistakes of a text, without the file and line that they begin with."""
    return [mistake.text for mistake in judge(text, path, {}).mistakes]


def with_store(path: str) -> str:
    return BASE.replace("[safety]", f'[store]\npath = "{path}"\n[safety]')


def test_a_store_at_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """Every role would find it out by itself, and end; on /dev/null a region was never ready, and said nothing."""
    pipe, plain = tmp_path / "pipe", tmp_path / "plain"
    os.mkfifo(pipe)
    plain.touch()
    assert "is a directory; name a file in it" in said(with_store(str(tmp_path)))[0]
    for device in ("/dev/null", "/dev/full", str(pipe)):
        assert "is a device, pipe or socket" in said(with_store(device))[0]
    assert "leads through something that is no directory" in said(with_store(f"{plain}/demo.db"))[0]
    assert said(with_store(str(plain))) == []
    assert said(with_store(str(tmp_path / "none" / "demo.db"))) == [], "it may be made before the start"


def test_a_store_whose_name_no_file_can_have_is_refused(tmp_path: Path) -> None:
    """With room for the log and the draft that lie beside it."""
    assert said(with_store(str(tmp_path / ("x" * 243)))) == []
    assert "a file name of 244 bytes; at most 243" in said(with_store(str(tmp_path / ("x" * 244))))[0]
    assert "a file name of 300 bytes" in said(with_store("x" * 300))[0]
    deep = "/".join(["/deep" * 50, "demo.db"])
    assert "at most 499" in said(with_store("/d" * 250 + "/demo.db"))[0]
    assert said(with_store(deep)) == []


def test_the_embedded_servers_own_name_is_no_endpoints() -> None:
    """Its own address stands there unmarked, so the endpoint would wait for a person for ever."""
    taken = BASE.replace('"api.example.test"', '"ns.example.test"')
    assert said(taken) == [
        "endpoint ns.example.test is the embedded server's own name, with its own address; take another"
    ]
    two = taken.replace('domain = "example.test"', 'domain = ["example.test", "other.test"]')
    assert len(said(two)) == 1
    everywhere = taken.replace('domain = "example.test"', 'domain = "example.test"\nlisten = "0.0.0.0:5300"')
    assert said(everywhere) == [], "there it puts no address"


@pytest.mark.parametrize(
    "url", [r"http://a\nb:7302/", r"http://:7302/a\r\nHost:x", r"http://:73\t02/", "http://:7302/a b"]
)
def test_a_url_with_what_no_url_has_is_refused(url: str) -> None:
    """urllib drops line ends and tabs (WHATWG's rule), so another URL would be asked than the one in the file."""
    found = said(BASE.replace("http://:8080/healthz", url))
    assert len(found) == 1
    assert "space or control character" in found[0]
