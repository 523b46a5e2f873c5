"""Secrets are found where the file says, refused where they lie open, and never repeated."""

import os
from pathlib import Path

import pytest

from fencepost.settings import check, decode, encode, judge
from fencepost.settings.initial import INITIAL
from fencepost.settings.schema import Secret
from fencepost.settings.secret import TsigKey, read_secret, read_tsig_key

SECRET = "aHVudGVyMmh1bnRlcjJodW50ZXIy"
KEY = f'key "Fencepost-EU1." {{\n\talgorithm hmac-sha256;\n\tsecret "{SECRET}";\n}};\n'


def region(key: str, token: str = "") -> str:
    text = INITIAL.replace('provider = "embedded"', f'provider = "rfc2136"\nserver = "192.0.2.53"\nkey = {key}\n')
    return text.replace("[api]\n", f"[api]\ntoken = {token}\n") if token else text


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def said(text: str, tmp_path: Path, environ: dict[str, str] | None = None) -> list[str]:
    found = [mistake.text for mistake in judge(text, str(tmp_path / "region.toml"), environ or {}).mistakes]
    assert not any(SECRET in one for one in found)
    return found


def test_a_key_is_read_as_tsig_keygen_prints_it(tmp_path: Path) -> None:
    """name, algorithm, secret; the name normalised like every name (RFC 8945, 4.2)."""
    path = written(tmp_path / "k", KEY)
    key = read_tsig_key(Secret(file=str(path)), {})
    assert key == TsigKey("fencepost-eu1", "hmac-sha256", b"hunter2hunter2hunter2")
    assert "hunter2" not in repr(key)


def test_a_key_may_stand_in_a_variable_in_one_line() -> None:
    """As nsupdate's -y takes it, since a variable holds one line more easily."""
    environ = {"K": f"hmac-sha512:k.example:{SECRET}"}
    assert read_tsig_key(Secret(env="K"), environ) == TsigKey("k.example", "hmac-sha512", b"hunter2hunter2hunter2")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (KEY.replace("sha256", "sha265"), "unknown TSIG algorithm 'hmac-sha265'; use hmac-sha256"),
        (KEY.replace("sha256", "md5"), "unknown TSIG algorithm"),
        (KEY.replace(SECRET, "not base64!"), "holds no key"),
        (KEY.replace(SECRET, "a"), "not base64"),
        (KEY.replace("algorithm", "algo"), "holds no key"),
        (KEY.replace("Fencepost-EU1.", "a..b"), "its key's name has an empty label"),
        ("hunter2", "holds no key; make one with  tsig-keygen fencepost > "),
        ("", "is empty"),
        (" \n", "is empty"),
    ],
)
def test_a_bad_key_is_refused_with_what_to_do(text: str, reason: str, tmp_path: Path) -> None:
    """Each way a key file goes wrong has its own text."""
    written(tmp_path / "k", text)
    (found,) = said(region('{ file = "k" }'), tmp_path)
    assert found.startswith("key: ")
    assert reason in found


def test_a_secret_in_place_is_refused_without_being_printed(tmp_path: Path) -> None:
    """Whatever form it has been written in (docs say: a file, or a variable)."""
    for value in (f'"{SECRET}"', f'{{ secret = "{SECRET}" }}', f'["{SECRET}"]', f'{{ env = "{SECRET}=" }}'):
        both = said(region(value, token=value), tmp_path)
        assert [one.partition(" ")[0] for one in both] == ["key", "token"]
    (found,) = said(region('{ env = "K" }', token=f'"{SECRET}"'), tmp_path, {"K": f"hmac-sha256:k:{SECRET}"})
    assert 'token = { file = "…" }' in found


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602, 0o620, 0o666])
def test_a_secret_that_others_can_read_is_refused(mode: int, tmp_path: Path) -> None:
    """As ssh does; the text is the command that mends it."""
    path = written(tmp_path / "k", KEY, mode)
    (found,) = said(region('{ file = "k" }'), tmp_path)
    assert f"(mode {mode:04o}); run  chmod 600 {path}" in found


def test_a_group_may_read(tmp_path: Path) -> None:
    """Debian keeps keys as root:bind 0640."""
    written(tmp_path / "k", KEY, 0o640)
    assert said(region('{ file = "k" }'), tmp_path) == []


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    """A missing file, an unset or empty variable, a folder, a pipe that would block."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir()
    for value, environ, reason in (
        ('{ file = "k" }', {}, "k is missing"),
        ('{ file = "pipe" }', {}, "pipe is not a file"),
        ('{ file = "folder" }', {}, "folder is not a file"),
        ('{ env = "K" }', {}, "variable K is not set"),
        ('{ env = "K" }', {"K": " "}, "variable K is empty"),
    ):
        (found,) = said(region(value), tmp_path, environ)
        assert reason in found


def test_what_this_user_may_not_read_is_told_apart_by_the_kind_of_error_and_no_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`check` says then that it may be right (EACCES, errno(3)); a value that reads like it is just wrong."""
    path, at = written(tmp_path / "k", KEY), str(tmp_path / "region.toml")
    assert not judge(region('{ file = "Permission denied" }'), at, {}).denied

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Zugriff verweigert")

    for method in ("read_text", "read_bytes"):
        monkeypatch.setattr(Path, method, refuse)
    found = judge(region(f'{{ file = "{path}" }}'), at, {})
    assert found.denied
    assert any("Zugriff verweigert" in each.text for each in found.mistakes)
    written_at = tmp_path / "region.toml"
    written_at.touch()
    assert check(written_at, {}).denied
    assert not check(tmp_path / "none.toml", {}).denied


def test_the_api_token_may_be_missing_but_not_open(tmp_path: Path) -> None:
    """It is made on first start; once there it is a secret like any other."""
    key = '{ env = "K" }'
    environ = {"K": f"hmac-sha256:k:{SECRET}"}
    assert said(region(key), tmp_path, environ) == []
    assert said(region(key, '{ file = "t" }'), tmp_path, environ) == []
    written(tmp_path / "t", SECRET, 0o644)
    (found,) = said(region(key, '{ file = "t" }'), tmp_path, environ)
    assert found.startswith("token: ")
    written(tmp_path / "api.token", SECRET, 0o644)
    assert len(said(region(key), tmp_path, environ)) == 1


def test_a_stored_region_holds_no_secret(tmp_path: Path) -> None:
    """The row in the store says where a secret is, never what it is."""
    written(tmp_path / "k", KEY)
    written(tmp_path / "api.token", SECRET)
    found = judge(region('{ file = "k" }'), str(tmp_path / "region.toml"), {}).region
    assert found is not None
    assert SECRET.encode() not in encode(found)
    assert decode(encode(found)) == found
    assert read_secret(found.api.token, {}) == SECRET


@pytest.mark.parametrize("user", [SECRET, f"ops:{SECRET}", f"ops:a/b@{SECRET}"])
def test_a_password_in_a_url_is_refused_and_not_repeated(user: str, tmp_path: Path) -> None:
    """What is wrong there is the password itself, and a message goes to terminals and logs."""
    probe = INITIAL.replace('"http://', f'"http://{user}@192.0.2.1')
    assert probe != INITIAL
    (one,) = said(probe, tmp_path)
    assert "has a user, password" in one or "is not a URL" in one
    endpoint = f'provider = "route53"\nendpoint = "https://{user}@192.0.2.1/"'
    assert any("…@192.0.2.1/" in one for one in said(INITIAL.replace('provider = "embedded"', endpoint), tmp_path))
