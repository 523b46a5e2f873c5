"""A manager that stands still for longer than a lease, or is killed, with live hosts: nothing lapses when it goes on.

Real processes, a real PostgreSQL. Two hosts alone: of so few the rule against a mass lapse says nothing, so what keeps
their leases is that a manager hears what it missed, and looks whose the shard is, before it lets anything lapse.
"""

import os
import signal
import time
from collections.abc import Iterator

import pytest
from agents import until
from fleet_stage import FleetStage
from postgresql import postgresql

RENEW_S = 1.0
LEASE_S = 3 * RENEW_S * 1.02


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetStage]:
    """Two hosts, held by one manager."""
    with postgresql() as server:
        stage = FleetStage(tmp_path_factory.mktemp("paused"), server, f"{RENEW_S:g}s")
        try:
            stage.begin()
            stage.manage()
            stage.agents(2)
            stage.all_held(2, 60)
            yield stage
        finally:
            stage.close()


def stopped_for_longer_than_a_lease(stage: FleetStage, name: str) -> None:
    """Stop a manager, and let it go on after whatever it knows of has run out."""
    pid = stage.processes[name].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(2 * LEASE_S)
    finally:
        os.kill(pid, signal.SIGCONT)


def asked_anew(stage: FleetStage) -> None:
    """Wait until both hosts have answered several times more."""
    before = stage.counts()["answers"]
    until(lambda: stage.counts()["answers"] >= before + 10, 60)


def test_who_stood_still_alone_hears_what_lies_there_before_it_lets_time_pass(stage: FleetStage) -> None:
    """nomad PR #14474, etcd #15247, #12528: the only manager is stopped for two leases; no lease is given anew."""
    before, epoch = stage.leases(), stage.shard().epoch
    stopped_for_longer_than_a_lease(stage, stage.owner())
    asked_anew(stage)
    assert stage.leases() == before
    assert stage.shard().epoch == epoch


def test_who_stood_still_while_another_took_over_stands_by_and_lets_nothing_lapse(stage: FleetStage) -> None:
    """etcd #15247, #12528, nomad #3840: it finds the shard another's before it acts on what it had known."""
    before, epoch, owner = stage.leases(), stage.shard().epoch, stage.owner()
    stage.manage()
    pid = stage.processes[owner].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        newer = stage.taken_over(epoch)
        asked_anew(stage)
        time.sleep(2 * LEASE_S)
    finally:
        os.kill(pid, signal.SIGCONT)
    epoch = stage.shard().epoch
    until(lambda: "shard 1 is another's now; standing by" in stage.log(owner), 60)
    asked_anew(stage)
    assert stage.leases() == before
    assert (stage.shard().epoch, stage.owner()) == (epoch, newer)
    stage.end(owner)


def test_who_is_killed_and_started_again_lets_none_of_the_live_lapse(stage: FleetStage) -> None:
    """nomad #3035: a manager restarts with live hosts. Each is asked before anything is held against it."""
    before, epoch = stage.leases(), stage.shard().epoch
    stage.end(stage.owner())
    time.sleep(2 * LEASE_S)
    stage.manage()
    stage.taken_over(epoch)
    asked_anew(stage)
    assert stage.leases() == before


def test_who_keeps_silent_after_a_restart_has_a_whole_lease_to_answer(stage: FleetStage) -> None:
    """nomad #3035: whoever takes over can't know when the last answer came, so it waits for all that may be worth."""
    epoch = stage.shard().epoch
    stage.end(stage.owner())
    stage.wish(deaf=["*"])
    stage.manage()
    taken = time.monotonic()
    while stage.shard().epoch == epoch:
        taken = time.monotonic()  # not before this
    until(lambda: any(lease == "lapsed" for lease, _, _ in stage.leases().values()), 60)
    assert time.monotonic() - taken >= LEASE_S
    stage.wish()
    stage.all_held(2, 60)
