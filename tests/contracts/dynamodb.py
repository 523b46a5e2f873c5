"""DynamoDB for the contract suite: ministack, another project's emulator, as a process on a free loopback port.

What the store leans on is checked of the emulator itself in test_dynamodb_emulator.py: a suite run on something that
decides conditions wrongly would prove nothing.
"""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from free_ports import free_port

PROGRAM = Path(__file__).parents[2] / ".venv" / "peers" / "bin" / "python"
STARTS_WITHIN_S = 30.0
AWS_REGION = "eu-west-1"


@contextlib.contextmanager
def emulator(directory: Path, services: str = "dynamodb") -> Iterator[str]:
    """The URL of an empty DynamoDB (or other services); its data is in memory and ends with it."""
    if not PROGRAM.exists():
        pytest.skip("ministack is not installed (make test does it)")
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "SERVICES": services,
        "TMPDIR": str(directory),
        "LOG_LEVEL": "ERROR",
    }
    with (directory / "ministack.log").open("wb") as log:
        process = subprocess.Popen(
            [str(PROGRAM), "-m", "ministack"], env=environment, cwd=directory, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while not answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((directory / "ministack.log").read_text()[-2000:])
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def aws_environment(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Let botocore find this emulator, and no credentials of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTESTSONLY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret that only tests know")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
