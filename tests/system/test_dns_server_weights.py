"""Weighted answers of the embedded DNS server: which addresses an answer shows when the marker carries weights."""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dns.message
import dns.rdataclass
import dns.rdatatype
import pytest
from dns.rdtypes.ANY.TXT import TXT
from dns_server_running import DOMAIN, KEY, Running, new_update, running, settings_in
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.fence import Generation, Marker
from fencepost.core.record_set import content
from fencepost.roles.dns_server.weights import ADDRESSES_MAX, choose

CHANCE = st.floats(0, 1, exclude_max=True)


@given(st.lists(st.tuples(st.integers(0, 255), CHANCE, CHANCE), min_size=1, max_size=40))
def test_a_draw_is_never_empty_never_past_eight_and_never_of_weight_nothing(
    drawn: list[tuple[int, float, float]],
) -> None:
    """What a weighted answer shows: at least one address, at most eight, each at most once, none of weight 0."""
    weights = [weight for weight, _, _ in drawn]
    if max(weights) == 0:
        return
    chosen = choose(weights, [chance for _, chance, _ in drawn], [rank for _, _, rank in drawn])
    assert 1 <= len(chosen) <= ADDRESSES_MAX
    assert len(set(chosen)) == len(chosen)
    assert all(weights[index] > 0 for index in chosen)
    if len(weights) <= ADDRESSES_MAX:
        assert all(index in chosen for index, weight in enumerate(weights) if weight == max(weights))


def test_each_address_is_shown_in_proportion_and_in_every_place() -> None:
    """Probability weight ÷ largest: over 20,000 draws within five standard deviations; the order is even."""
    rng = random.Random(11)
    weights, rounds = [255, 128, 64, 1], 20_000
    shown, first = Counter[int](), Counter[int]()
    for _ in range(rounds):
        chosen = choose(weights, [rng.random() for _ in weights], [rng.random() for _ in weights])
        shown.update(chosen)
        first[chosen[0]] += 1
    for index, weight in enumerate(weights):
        wanted = rounds * weight / 255
        assert abs(shown[index] - wanted) <= 5 * (wanted * (1 - weight / 255)) ** 0.5 + 1
    assert first[1] / first[0] == pytest.approx((0.5 / 2) / (0.5 / 2 + 0.5), rel=0.35)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    rng = random.Random(5)
    with running(settings_in(tmp_path), draw=lambda count: [rng.random() for _ in range(count)]) as found:
        yield found


def publish(server: Running, name: str, weights: dict[str, int], *, records: list[str] | None = None) -> None:
    """Write an endpoint as an enactor does: marker and addresses in one update."""
    value = content(weights, 30)
    marker = Marker.of("demo", "a1b2", Generation(0, 1), value, None, 1)
    data = TXT(dns.rdataclass.IN, dns.rdatatype.TXT, marker.encode())
    update = new_update()
    owner = f"_fencepost.{name}".replace("_fencepost.*", "_fencepost._wildcard")
    update.replace(owner, 30, data)
    update.delete(name)
    for address in records if records is not None else value.addresses:
        update.add(name, 30, "AAAA" if ":" in address else "A", address)
    assert server.update(update) == "NOERROR"


def shown(server: Running, name: str, rtype: str = "A", rounds: int = 600) -> tuple[Counter[str], int]:
    """How often each address came, and the largest answer."""
    seen, most = Counter[str](), 0
    for _ in range(rounds):
        (found,) = server.ask(f"{name}.{DOMAIN}", rtype).answer
        seen.update(str(rdata) for rdata in found)
        most = max(most, len(found))
    return seen, most


def test_weights_in_the_marker_rule_the_answers_of_each_family(server: Running) -> None:
    """The marker's further strings carry the weights: the same transaction changes addresses and weights."""
    publish(server, "api", {"192.0.2.1": 200, "192.0.2.2": 50, "2001:db8::1": 10, "2001:db8::2": 5})
    seen, _ = shown(server, "api")
    assert seen["192.0.2.1"] == 600
    assert 100 < seen["192.0.2.2"] < 200
    seen, _ = shown(server, "api", "AAAA")
    assert seen["2001:db8::1"] == 600
    assert 240 < seen["2001:db8::2"] < 360
    publish(server, "api", {"192.0.2.1": 50, "192.0.2.2": 200})
    assert shown(server, "api", rounds=50)[0]["192.0.2.2"] == 50


def test_a_wildcard_endpoint_and_an_alias_to_a_weighted_name_are_weighted_too(server: Running) -> None:
    """The records' own name finds the marker, not the name that was asked for."""
    publish(server, "*.wild", {"192.0.2.1": 200, "192.0.2.2": 2})
    update = new_update()
    update.add("alias", 30, "CNAME", "x.wild")
    assert server.update(update) == "NOERROR"
    for name in ("any.wild", "x.wild"):
        seen, _ = shown(server, name, rounds=100)
        assert seen["192.0.2.1"] == 100
        assert seen["192.0.2.2"] < 20
    both = [sum(len(found) for found in server.ask(f"alias.{DOMAIN}").answer) for _ in range(50)]
    assert set(both) == {2, 3} or set(both) == {2}


def test_equal_weights_and_markers_out_of_step_show_every_address(server: Running) -> None:
    """A weight is believed only if it is about exactly these addresses; else all are shown, so that none is lost."""
    publish(server, "equal", {"192.0.2.1": 7, "192.0.2.2": 7})
    publish(server, "odd", {"192.0.2.1": 200, "192.0.2.2": 1}, records=["192.0.2.1", "192.0.2.3"])
    for name, wanted in (("equal", {"192.0.2.1", "192.0.2.2"}), ("odd", {"192.0.2.1", "192.0.2.3"})):
        seen, _ = shown(server, name, rounds=20)
        assert seen == dict.fromkeys(wanted, 20)


def test_at_most_eight_of_many_and_all_for_who_signs(server: Running) -> None:
    """Eight addresses fit any answer; a writer of ours that signs its query sees the records as they are."""
    publish(server, "many", {f"192.0.2.{n}": 100 + n % 2 for n in range(1, 41)})
    seen, most = shown(server, "many", rounds=200)
    assert most == ADDRESSES_MAX
    assert len(seen) == 40
    query = dns.message.make_query(f"many.{DOMAIN}", "A")
    query.use_tsig(KEY)
    assert len(server.send(query, tcp=True).answer[0]) == 40
