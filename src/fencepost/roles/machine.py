"""Which machine this is, so that a process number isn't looked up where it means another process, or none.

Roles of one region may run on several hosts, each with process numbers of its own, and so may containers on one host.
The kernel draws a boot id at each boot (random(4)), and a namespace of process numbers has an inode
(pid_namespaces(7)): together they say where a number counts. The host's name is for people alone: two may share one.
"""

import os
import socket
from functools import cache
from pathlib import Path


@cache
def this_machine() -> str:
    """Where this process's number counts; "" where the kernel doesn't say, which is taken for here."""
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{booted}/{os.readlink('/proc/self/ns/pid')}"
    except (OSError, ValueError):
        return ""


@cache
def host_name() -> str:
    """What people call this host."""
    return socket.gethostname().lower()
