"""`up --for` as a check in scripts: what was never ready is no success."""

import subprocess
from pathlib import Path

from free_ports import free_port
from patience import patient
from regions import FENCEPOST, RunningRegion

KEY = 'key "writer" {\n  algorithm hmac-sha256;\n  secret "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";\n};\n'


def test_a_region_that_was_never_ready_does_not_end_as_if_it_had_been(tmp_path: Path) -> None:
    """Its DNS server isn't there; the exit code was 0, and the last line spoke of no more than how fast it stopped."""
    key = tmp_path / "dns.key"
    key.write_text(KEY)
    key.chmod(0o600)
    nowhere = free_port()
    server = f'provider = "rfc2136"\nserver = "127.0.0.1:{nowhere}"\nkey = {{ file = "{key}" }}'

    def edit(text: str) -> str:
        lines = text.replace('provider = "embedded"', server).splitlines()
        dns = lines.index("[dns]"), lines.index("[store]")
        return "\n".join(
            line
            for at, line in enumerate(lines)
            if not (dns[0] < at < dns[1] and line.startswith(("listen", "transfer")))
        )

    region = RunningRegion(tmp_path, edit=edit)
    done = subprocess.run(
        # Long enough that it has looked for an answer, and missed it.
        [str(FENCEPOST), "up", "--config", str(region.config), "--for", f"{patient(3):.0f}s"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=patient(60),
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert f"never ready: DNS at 127.0.0.1:{nowhere} doesn't answer api.example.test" in last
