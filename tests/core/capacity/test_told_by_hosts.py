"""What placing knows of what hosts told, between a manager's order and its answer."""

import numpy as np
from msgspec import structs

from fencepost.core.admission import AdmissionSettings
from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.lease_calls import Answered, ReadHosts, lease_settings
from fencepost.core.capacity.lease_manager import LeaseManager
from fencepost.core.capacity.messages import Answer
from fencepost.core.capacity.placement import Told
from fencepost.core.capacity.rows import HostRow
from fencepost.core.capacity.token import Token
from fencepost.core.capacity.told_by_hosts import ToldByHosts
from fencepost.core.instant import SECOND

WHY = "/state/memory can't be written: No space left on device"
ROW = HostRow("h1", "a", "192.0.2.1:7700", lease="held", life="life", number=2, nonce=7)
ANSWER = Answer("h1", Token(3, 2, 7), 6, 1, 1, 1)
FULL = structs.replace(ANSWER, down=("a.1",), causes=("exit code 1",), unable=WHY, refused=("a.2",))


def manager_of(row: HostRow) -> LeaseManager:
    """One that owns its shard in epoch 3 and has read this row."""
    settings = lease_settings("m", 1, 1, 180 * SECOND)
    manager = LeaseManager(settings, AdmissionSettings(100, SECOND, SECOND, SECOND, 3 * SECOND))
    manager.leases.owner.epoch = 3
    book = manager.book
    book.life, book.epoch = "life", 3
    call = book.reading(ReadHosts(anew=True))
    assert book.take(call, [Versioned(row, 1)])
    found = book.read(call, "life", 1, ())
    assert found is not None
    manager.leases.hosts.grow(found.size, 0)
    manager.leases.hosts.take(found.facts)
    return manager


def hears(manager: LeaseManager, answer: Answer) -> None:
    """An answer under the present token."""
    manager.book.hear(answer)
    answered, _ = manager.book.heard()
    assert isinstance(answered, Answered)
    manager.leases.hosts.say(answered, np.zeros(1, np.bool_))


def orders(manager: LeaseManager) -> None:
    """An order has gone out: what the host holds is in doubt from now on."""
    manager.leases.hosts.fresh[0] = False


def test_what_a_host_told_counts_until_an_order_goes_out() -> None:
    """From then on it may hold another set, and stop or start what it said."""
    manager = manager_of(ROW)
    told = ToldByHosts(manager)
    assert told.get("h1") is None
    hears(manager, structs.replace(ANSWER, down=("a.1",), causes=("exit code 1",)))
    assert told.get("h1") == Told(1, frozenset({"a.1"}), {"a.1": "exit code 1"})
    orders(manager)
    assert told.get("h1") is None
    assert "h1" not in told


def test_that_a_host_cant_write_counts_though_an_order_is_out() -> None:
    """It answers no order: one that was ordered as soon as it answered a check was never known to be unable, and was
    given instances for ever, on each machine quick enough to order before its placer looked.
    """
    manager = manager_of(ROW)
    told = ToldByHosts(manager)
    hears(manager, FULL)
    orders(manager)
    assert told.get("h1") == Told(1, frozenset({"a.1"}), {"a.1": "exit code 1"}, WHY, 6, frozenset({"a.2"}))
    assert "h1" in told
    hears(manager, ANSWER)
    assert told.get("h1") == Told(1), "it can again"


def test_what_was_told_under_an_older_token_counts_no_more() -> None:
    """Neither of an older grant nor of an older owner of the shard."""
    for token in (Token(3, 1, 7), Token(3, 2, 8), Token(2, 2, 7)):
        manager = manager_of(ROW)
        manager.book.hear(structs.replace(FULL, token=token))
        assert ToldByHosts(manager).get("h1") is None
    assert ToldByHosts(manager_of(ROW)).get("h2") is None
