"""`up --for` as a check in scripts: what was never ready is no success."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from dns_server_running import running, settings_in
from free_ports import free_port
from patience import patient
from regions import FENCEPOST, RunningRegion

KEY = 'key "writer" {\n  algorithm hmac-sha256;\n  secret "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";\n};\n'


def on_server(port: int, key: Path) -> Callable[[str], str]:
    """What makes a region's file one on somebody else's server."""
    key.write_text(KEY)
    key.chmod(0o600)
    server = f'provider = "rfc2136"\nserver = "127.0.0.1:{port}"\nkey = {{ file = "{key}" }}'

    def edit(text: str) -> str:
        lines = text.replace('provider = "embedded"', server).splitlines()
        dns = lines.index("[dns]"), lines.index("[store]")
        return "\n".join(
            line
            for at, line in enumerate(lines)
            if not (dns[0] < at < dns[1] and line.startswith(("listen", "transfer")))
        )

    return edit


def up_for(region: RunningRegion, seconds: float) -> tuple[int, str]:
    """The exit code of a run that ends by itself, and its last line."""
    done = subprocess.run(
        [str(FENCEPOST), "up", "--config", str(region.config), "--for", f"{patient(seconds):.0f}s"],
        cwd=region.folder,
        capture_output=True,
        text=True,
        timeout=patient(60),
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()[-1]


def test_a_region_that_was_never_ready_does_not_end_as_if_it_had_been(tmp_path: Path) -> None:
    """Its DNS server isn't there; the exit code was 0, and the last line spoke of no more than how fast it stopped."""
    nowhere = free_port()
    region = RunningRegion(tmp_path, edit=on_server(nowhere, tmp_path / "dns.key"))
    code, last = up_for(region, 3)  # long enough that it has looked for an answer, and missed it
    assert code == 1, last
    assert f"never ready: DNS at 127.0.0.1:{nowhere} doesn't answer api.example.test" in last


def test_a_region_whose_key_is_refused_is_not_ready_though_its_names_are_answered(tmp_path: Path) -> None:
    """docs/operating/commands.md: exit 1 if it was never ready. What was written before answers; nothing can be written
    now, and `up` said "ready" of three enactors, none of which could read (RFC 8945, section 5.2.2: BADSIG).
    """
    key = tmp_path / "dns.key"
    with running(settings_in(tmp_path)) as server:
        region = RunningRegion(tmp_path, edit=on_server(server.port, key))
        region.dns_port = server.port
        with region:
            region.until(region.converged, 10, "what it wants is answered")
        key.write_text(KEY.replace("MDEy", "MDEz"))
        code, last = up_for(region, 3)
    assert code == 1, last
    assert "never ready: enactor/a is misconfigured: " in last
    assert "doesn't accept our key" in last
