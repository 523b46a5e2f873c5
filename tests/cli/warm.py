"""Commands in processes of their own, forked from one that has the program loaded already.

A call of ``fencepost`` costs an interpreter and some hundred modules before its first line of ours runs, and the tests
make hundreds of calls. So each worker keeps one process that has loaded them, and that forks for each call: what runs
is still a process with its own folder, environment, descriptors and exit code, and nothing that it does stays.

What this can't show is the start itself: which modules a command loads, how the interpreter finds its streams and its
encoding. Tests of those start a real one, as does any call whose environment the interpreter looks at.
"""

import array
import atexit
import contextlib
import importlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

REQUEST_BYTES = 1 << 18
LOADED = (
    "asyncio",
    "sqlite3",
    "dns.message",
    "dns.query",
    "fencepost.cli.app",
    "fencepost.cli.errors",
    "fencepost.cli.looking",
    "fencepost.cli.screen",
    "fencepost.cli.fleet.explaining",
    "fencepost.assembly.stores",
    "fencepost.adapters.store_sqlite.fleet",
    "fencepost.adapters.dns_rfc2136",
)
"""What commands load when they are called, beside their own modules."""


class Warm:
    """The process that forks; started at the first call, ended with whoever started it."""

    def __init__(self) -> None:
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = subprocess.Popen([sys.executable, __file__], stdin=theirs.fileno(), stdout=subprocess.DEVNULL)
        theirs.close()
        atexit.register(self.end)

    def end(self) -> None:
        """It ends when nobody is left to ask it."""
        self.ours.close()
        self.process.wait(10)

    def call(
        self, words: Sequence[str], cwd: Path | None, environ: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """What a command said, and its exit code. Raises ``subprocess.TimeoutExpired``, having ended it."""
        request = json.dumps([list(words), str(cwd or Path.cwd()), dict(environ)]).encode()
        pipes = [os.pipe() for _ in range(3)]
        try:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [end for _, end in pipes]))]
            self.ours.sendmsg([request], rights)
        finally:
            for _, end in pipes:
                os.close(end)
        said: dict[int, str] = {}
        readers = [threading.Thread(target=read, args=(said, place, end)) for place, (end, _) in enumerate(pipes[:2])]
        for reader in readers:
            reader.start()
        with open(pipes[2][0], "rb", buffering=0) as told:
            pid = int(told.readline())
            late = threading.Timer(timeout, os.kill, (pid, signal.SIGKILL))
            late.start()
            code = int(told.readline())
            late.cancel()
        for reader in readers:
            reader.join()
        if late.finished.is_set() and code == -signal.SIGKILL:
            raise subprocess.TimeoutExpired(list(words), timeout, said[0], said[1])
        return subprocess.CompletedProcess(list(words), code, said[0], said[1])


def read(said: dict[int, str], place: int, end: int) -> None:
    """All that comes out of a pipe, as text."""
    with open(end, encoding="utf-8", newline=None) as stream:
        said[place] = stream.read()


def serve() -> None:
    """Fork for each request until nobody is left to ask."""
    from fencepost.cli import COMMANDS

    for name in {*LOADED, *(place.partition(":")[0] for place in COMMANDS.values())}:
        importlib.import_module(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    asked = socket.socket(fileno=os.dup(0))
    while True:
        request, fds, _, _ = socket.recv_fds(asked, REQUEST_BYTES, 3)
        if not request:
            return
        if os.fork() == 0:
            asked.close()
            wait_for(json.loads(request), fds)
        for fd in fds:
            os.close(fd)


def wait_for(request: tuple[list[str], str, dict[str, str]], fds: Sequence[int]) -> None:
    """Fork the command, and say its pid and its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os._exit(run(*request, fds))
    os.close(fds[0])
    os.close(fds[1])
    os.write(fds[2], f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    os.write(fds[2], f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def run(words: list[str], cwd: str, environ: dict[str, str], fds: Sequence[int]) -> int:
    """Be the command; its exit code."""
    from fencepost.cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    encoding = sys.stderr.encoding
    nothing = os.open(os.devnull, os.O_RDONLY)
    for place, fd in enumerate((nothing, *fds[:2])):
        os.dup2(fd, place)
    os.closerange(3, max(nothing, *fds) + 1)
    os.environ.clear()
    os.environ.update(environ)
    sys.stdin = open(0, encoding=encoding, closefd=False)  # noqa: SIM115  it stays open
    sys.stdout, sys.stderr = stream(1, encoding), stream(2, encoding, "backslashreplace")
    sys.argv = ["fencepost", *words]
    code = 1
    try:
        os.chdir(cwd)
        main()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    except BaseException:
        traceback.print_exc()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
    for each in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            each.flush()
    return code


def stream(fd: int, encoding: str, errors: str = "strict") -> io.TextIOWrapper:
    """A standard stream, as the interpreter makes it."""
    return io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(fd, "wb", closefd=False)), encoding, errors, line_buffering=fd == 2
    )


if __name__ == "__main__":
    serve()
