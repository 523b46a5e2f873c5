"""The pure parts of the DynamoDB store: its errors, what is said of a table, and how values stand in items."""

import random
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from botocore import exceptions as boto
from dynamodb_faulty import answered, lost
from hypothesis import given
from hypothesis import strategies as st

from fencepost.adapters.store_dynamodb import faults, items
from fencepost.adapters.store_dynamodb.blobs import Blob
from fencepost.adapters.store_dynamodb.chain import header_items
from fencepost.adapters.store_dynamodb.faults import Kind
from fencepost.adapters.store_dynamodb.overrides import Words
from fencepost.adapters.store_dynamodb.root import Root, read_root
from fencepost.adapters.store_dynamodb.table import Described, judged, refuse
from fencepost.core.store import Head
from fencepost.ports import Misconfigured, PutBack, Refused, Unavailable

GOOD: Mapping[str, Any] = {
    "TableName": "t",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
    "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
    "DeletionProtectionEnabled": True,
}


@pytest.mark.parametrize(
    ("error", "kind", "port", "words"),
    [
        (answered("ThrottlingException"), Kind.BUSY, Unavailable, "throttles"),
        (answered("ProvisionedThroughputExceededException"), Kind.BUSY, Unavailable, "throttles"),
        (answered("RequestLimitExceeded"), Kind.BUSY, Unavailable, "throttles"),
        (answered("ReplicatedWriteConflictException"), Kind.BUSY, Unavailable, "throttles"),
        (answered("InternalServerError", 500), Kind.LOST, Unavailable, "failed at PutItem"),
        (answered("ServiceUnavailable", 503), Kind.LOST, Unavailable, "failed at PutItem"),
        (lost(), Kind.LOST, Unavailable, "didn't answer PutItem"),
        (boto.ConnectionClosedError(endpoint_url="u"), Kind.LOST, Unavailable, "didn't answer PutItem"),
        (boto.EndpointConnectionError(endpoint_url="u"), Kind.BUSY, Unavailable, "can't be reached"),
        (boto.ConnectTimeoutError(endpoint_url="u"), Kind.BUSY, Unavailable, "can't be reached"),
        (boto.SSLError(endpoint_url="u", error="e"), Kind.FINAL, Misconfigured, "certificate"),
        (answered("AccessDeniedException"), Kind.FINAL, Misconfigured, "PutItem is denied"),
        (answered("ExpiredTokenException"), Kind.FINAL, Misconfigured, "have expired"),
        (answered("UnrecognizedClientException"), Kind.FINAL, Misconfigured, "doesn't accept the credentials"),
        (answered("InvalidSignatureException"), Kind.FINAL, Misconfigured, "doesn't accept the credentials"),
        (answered("ResourceNotFoundException"), Kind.FINAL, Unavailable, "table isn't there"),
        (answered("ValidationException"), Kind.FINAL, Misconfigured, "refuses PutItem"),
        (boto.NoCredentialsError(), Kind.FINAL, Misconfigured, "no usable AWS credentials"),
        (boto.ProfileNotFound(profile="p"), Kind.FINAL, Misconfigured, "no usable AWS credentials"),
        (boto.NoRegionError(), Kind.FINAL, Misconfigured, "no AWS region"),
        (
            boto.CredentialRetrievalError(provider="p", error_msg="e"),
            Kind.FINAL,
            Unavailable,
            "credentials can't be fetched",
        ),
        (boto.InvalidRegionError(region_name="x y"), Kind.FINAL, Misconfigured, "can't be sent"),
    ],
)  # fmt: skip
def test_each_error_is_one_of_three(error: Exception, kind: Kind, port: type[Exception], words: str) -> None:
    """AWS's error names (DynamoDB developer guide, "Error handling") and botocore's: what each means for the caller."""
    told = faults.translated(error, "PutItem", "table t")
    assert faults.kind_of(error) is kind
    assert type(told) is port
    assert words in told.what
    assert told.where == "table t"
    assert told.hint
    assert told.hint.count(". ") <= 2


@pytest.mark.parametrize(
    "code",
    ["AccessDeniedException", "ExpiredTokenException", "UnrecognizedClientException", "InvalidSignatureException"],
)
def test_no_error_repeats_what_aws_says_of_credentials(code: str) -> None:
    """AWS's own text may hold a key's id, a token, or the canonical request."""
    error = answered(code, message="AKIAIOSFODNN7EXAMPLE FwoGZXIvYXdz")
    told = faults.translated(error, "PutItem", "table t")
    assert "AKIA" not in f"{told} {told.hint}"
    assert "FwoG" not in f"{told} {told.hint}"


def verdicts(**other: Any) -> list[tuple[str, str]]:
    """What is said of a table that differs from a good one."""
    return [(one.verdict, one.what) for one in judged({**GOOD, **other}) if one.verdict != "good"]


def test_a_table_is_judged() -> None:
    """What a person should change, the worst first."""
    assert verdicts() == []
    assert [verdict for verdict, _ in verdicts(DeletionProtectionEnabled=False)] == ["warning"]
    provisioned = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 4}
    ((verdict, what),) = verdicts(BillingModeSummary={}, ProvisionedThroughput=provisioned)
    assert verdict == "warning"
    assert "5 reads and 4 writes" in what
    ((verdict, what),) = verdicts(KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}])
    assert verdict == "refused"
    numbers = [{"AttributeName": name, "AttributeType": "N"} for name in ("pk", "sk")]
    assert verdicts(AttributeDefinitions=numbers)[0][0] == "refused"


@pytest.mark.parametrize("mode", [{}, {"MultiRegionConsistency": "EVENTUAL"}])
def test_a_global_table_with_eventual_consistency_is_refused(mode: dict[str, str]) -> None:
    """MREC: each Region decides conditions by itself and the last writer wins, so two planners could both publish."""
    table = {**GOOD, **mode, "Replicas": [{"RegionName": "us-east-1"}], "GlobalTableVersion": "2019.11.21"}
    with pytest.raises(Misconfigured, match=r"us-east-1.*two Regions could both win"):
        refuse(table, "t")


def test_a_table_that_was_a_global_one_is_taken_again() -> None:
    """A person who removed the replicas, as told, isn't refused for ever; the version of 2017 doesn't list them."""
    refuse({**GOOD, "GlobalTableVersion": "2019.11.21", "Replicas": []}, "t")
    with pytest.raises(Misconfigured, match="2017"):
        refuse({**GOOD, "GlobalTableVersion": "2017.11.29"}, "t")


def test_a_global_table_with_strong_consistency_is_taken() -> None:
    """MRSC: conditions are decided across Regions; the store uses no transaction, which such a table wouldn't take."""
    replicas = [{"RegionName": "us-east-1"}, {"RegionName": "us-east-2"}]
    table = {**GOOD, "MultiRegionConsistency": "STRONG", "Replicas": replicas, "GlobalTableVersion": "2019.11.21"}
    refuse(table, "t")
    assert any("strong consistency" in one.what for one in judged(table))


def test_a_replica_is_told_from_a_copy() -> None:
    """A restored table has another id, a replica in another Region another ARN; only a copy may be emptied."""
    arn = "arn:aws:dynamodb:{}:123456789012:table/t"
    here = Described(arn.format("eu-west-1"), "id 1", ("us-east-1", "us-east-2"))
    restored = Described(arn.format("eu-west-1"), "id 2")
    assert here.origin != restored.origin
    assert here.replicates(Described(arn.format("us-east-1"), "id 3").origin)
    assert not here.replicates(Described(arn.format("eu-central-1"), "id 3").origin)
    assert not here.replicates(restored.origin)
    assert not here.replicates("")


@given(st.binary(max_size=3000) | st.binary(max_size=20).map(lambda part: part * 100))
def test_a_packed_body_is_read_again(body: bytes) -> None:
    """Compressed where that helps, and never longer than by one byte."""
    stored = items.pack(body)
    assert items.unpack(stored) == body
    assert len(stored) <= len(body) + 1


@given(st.binary(max_size=50))
def test_no_other_bytes_are_taken_for_a_body(stored: bytes) -> None:
    """Damaged or another version's: said, never guessed."""
    try:
        items.unpack(stored)
    except ValueError:
        return
    assert stored[:1] in (b"\0", b"\1")


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_sort_keys_are_in_the_order_of_numbers(one: int, other: int) -> None:
    """DynamoDB sorts by bytes."""
    assert (items.padded(one) < items.padded(other)) == (one < other)


def test_a_body_too_big_is_refused_with_the_numbers() -> None:
    """The limit is AWS's; which of ours met it, and by how much, is said."""
    with pytest.raises(Refused, match="the row of x has 400,000 bytes"):
        items.packed(random.Random(1).randbytes(400_000), "the row of x", "t")


roots = st.builds(
    Root,
    identity=st.text("0123456789abcdef", min_size=16, max_size=16),
    origin=st.text(max_size=100),
    number=st.integers(0, 2**63 - 1),
    nonce=st.text("0123456789abcdef", max_size=16),
    inputs=st.integers(0, 2**63 - 1),
    snapshot=st.integers(0, 2**63 - 1),
    revision=st.integers(0, 2**63 - 1),
    tokens=st.lists(st.text("0123456789abcdef", min_size=16, max_size=16), min_size=1, max_size=32).map(tuple),
    index=st.builds(Blob, st.binary(max_size=50), st.text(max_size=30), st.integers(0, 200)),
    chain=st.builds(Blob, st.binary(max_size=50), st.text(max_size=30), st.integers(0, 200)),
    since_chain=st.integers(0, 500),
)


@given(roots)
def test_a_root_is_read_as_it_was_written(root: Root) -> None:
    """Nothing of it is lost, and it stays far below an item's limit."""
    item = root.item()
    assert read_root(item, "t") == root
    assert len(item["body"]["B"]) < 4096


def test_a_long_list_of_names_is_cut_into_items() -> None:
    """A first plan names every endpoint there is."""
    names = [f"endpoint-{number}.{'x' * 60}.{'y' * 60}.example" for number in range(2500)]
    cuts = header_items(Head("5eed", 2, "nonce"), Head("5eed", 1, "before"), names, "t")
    assert len(cuts) == 3
    assert [name for cut in cuts for name in msgspec.json.decode(items.body(cut))] == names
    assert len({cut["sk"]["S"] for cut in cuts}) == 3


ids = st.sampled_from("abc")
bodies = st.binary(max_size=2)


@given(
    st.lists(st.one_of(st.tuples(st.just("place"), ids, bodies), st.tuples(st.just("end"), ids))),
    st.dictionaries(ids, bodies),
)
def test_a_word_placed_or_ended_by_a_person_is_never_undone(
    done: list[tuple[Any, ...]], remembered: dict[str, bytes]
) -> None:
    """Whatever an enactor remembers of a lost store: ids that ever stood here stay as they are."""
    words = Words()
    for kind, name, *rest in done:
        if kind == "place":
            words = words.placed(name, *rest)
        elif name in words.words:
            words = words.ended(name)
    after, changed = words.restored(PutBack("into", 0, "lost", 1, remembered))
    assert {name: after.words.get(name) for name in words.origins} == {
        name: words.words.get(name) for name in words.origins
    }
    assert set(changed) == set(remembered) - set(words.origins)
    again, nothing = after.restored(PutBack("into", 0, "lost", 2, remembered))
    assert (again.words, list(nothing)) == (after.words, [])
