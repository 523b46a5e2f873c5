"""Roles on several hosts with one store between them: a process number means nothing on another host."""

import asyncio
import os
from collections.abc import Sequence

from msgspec import structs
from status_examples import NOW, beat, facts, made, problems, stored

from fencepost.core.instant import SECOND
from fencepost.ports import Beat
from fencepost.roles import heartbeat
from fencepost.roles.loop import Condition
from fencepost.roles.machine import host_name, this_machine
from fencepost.roles.status.document import RoleStatus
from fencepost.roles.status.processes import pids_of
from fencepost.world.reference_store import ReferenceStore

ELSEWHERE = "0f5a/pid:[4026532000]"
PID = next(each.pid for each in stored().beats if each.role == "enactor/b")


def signs(*, ago: float = 0.4, host: str = "db2", machine: str = ELSEWHERE) -> tuple[Beat, ...]:
    """All roles' signs of life, enactor b's from another host."""
    return tuple(
        structs.replace(each, host=host, machine=machine, at=NOW - int(ago * SECOND)) if each.pid == PID else each
        for each in stored().beats
    )


def enactor_b(beats: Sequence[Beat], **more: object) -> RoleStatus:
    """What status says of it, where no supervisor runs roles (systemd)."""
    (found,) = [
        role for role in made(store=stored(beats=tuple(beats)), processes={}, **more).roles if role.name == "enactor/b"
    ]
    return found


def test_a_role_on_another_host_is_up_though_no_process_here_has_its_number() -> None:
    """Three hosts, a zone's roles on each (docs/operating/store-postgresql.md): two thirds of them were called down."""
    found = enactor_b(signs(), gone=frozenset({PID}))
    assert (found.state, found.pid, found.host, found.last_error) == ("up", PID, "db2", None)
    here = enactor_b(signs(machine=this_machine()), gone=frozenset({PID}))
    assert (here.state, here.host) == ("down", None)


def test_a_stopped_process_here_says_nothing_of_a_role_with_its_number_on_another_host() -> None:
    """Pid 7 in one container, and pid 7 in the next."""
    assert enactor_b(signs(), stopped=frozenset({PID})).state == "up"
    assert enactor_b(signs(machine=""), stopped=frozenset({PID})).state == "silent"


def test_a_role_on_another_host_that_is_not_heard_is_silent_and_said_to_be_there() -> None:
    """Whether its process is gone can't be seen from here; where to look can be said."""
    beats = signs(ago=40)
    status = made(store=stored(beats=beats), processes={})
    assert {role.name: role.state for role in status.roles}["enactor/b"] == "silent"
    found = problems(status)["role-silent", "enactor/b"]
    assert found.what == f"on db2 (process {PID}) it gave no sign of life for 40 s"
    assert found.try_ == "ssh db2 fencepost status"
    assert found.needs_person


def test_a_role_that_runs_on_two_hosts_is_not_silent_here_when_the_other_spoke_last() -> None:
    """They speak under one name: of ours nothing can be heard then, and nothing is known against it."""
    beats = [*stored().beats, beat("planner", 999, machine=ELSEWHERE, host="db2")]
    for ago, state in ((1, "up"), (40, "silent")):
        beats[-1] = structs.replace(beats[-1], at=NOW - ago * SECOND)
        roles = made(store=stored(beats=tuple(beats)), processes=facts().processes).roles
        (planner,) = [role for role in roles if role.name == "planner"]
        assert (planner.state, planner.host) == (state, None)


def test_only_numbers_of_this_machine_are_looked_up() -> None:
    """A version before, which didn't say, ran on the store's one machine or is restarted soon."""
    beats = (beat("planner", 11), beat("janitor", 12, machine=this_machine()), beat("api", 13, machine=ELSEWHERE))
    assert pids_of(stored(beats=beats), {}) == {11, 12}


def test_each_sign_of_life_says_where_its_number_counts() -> None:
    """The kernel's boot id and the namespace of process numbers (random(4), pid_namespaces(7))."""

    async def go() -> None:
        store = ReferenceStore("1111-store", lambda: "a", asyncio.sleep)
        beating = asyncio.create_task(heartbeat.beat("planner", store, Condition()))
        while not (signs := await store.beats()):  # noqa: ASYNC110  the reference store takes it in the next turn
            await asyncio.sleep(0)
        beating.cancel()
        (sign,) = signs
        assert (sign.pid, sign.machine, sign.host) == (os.getpid(), this_machine(), host_name())
        assert this_machine().endswith(os.readlink("/proc/self/ns/pid"))

    asyncio.run(go())
