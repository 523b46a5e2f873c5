"""What Route 53's refusals mean: texts as public reports show them, codes as AWS's documents list them."""

import pytest
from dns_scene import change
from msgspec import structs
from route53_stage import Route53Stage, server, stage

from fencepost.adapters.dns_route53.errors import Asked, Verdict, complaint, no_credentials, reasons, refused
from fencepost.core.zone import Live
from fencepost.dev.route53 import Fault
from fencepost.ports import Misconfigured, PortError, Refused, Unavailable

__all__ = ["server", "stage"]
CHANGED, FULL, NEVER = Verdict.CHANGED, Verdict.FULL, Verdict.NEVER
TEXTS = [
    (
        "external-dns #732",
        "Tried to delete resource record set [name='flex-579-opus.k8s.domain2.com.au.', type='A'] but the values"
        " provided do not match the current values",
        CHANGED,
        "flex-579-opus.k8s.domain2.com.au.",
    ),
    (
        "boto #2887",
        "Tried to delete resource record set [name='k.bestwestdays.net.', type='A'] but it was not found",
        CHANGED,
        "k.bestwestdays.net.",
    ),
    (
        "lokomotive-kubernetes #181",
        "[Tried to create resource record set [name='mateusz-private.dev.example.com.', type='A'] but it already"
        " exists]",
        CHANGED,
        "mateusz-private.dev.example.com.",
    ),
    (
        "cli53 #317",
        "[Tried to create resource record set [name='geo.mydomain.com.', type='A', set-identifier='Default'] but it"
        " already exists]",
        CHANGED,
        "geo.mydomain.com.",
    ),
    (
        "terraform-aws-open-next #24",
        "[RRSet of type A with DNS name www.dev.xxx.ge. is not permitted because a conflicting RRSet of type CNAME with"
        " the same DNS name already exists in zone dev.xxx.ge.]",
        CHANGED,
        "www.dev.xxx.ge.",
    ),
    (
        "zinc #178",
        "RRSet of type A with DNS name www.calindon.com. is not permitted because a conflicting RRSet of type  CNAME"
        " with the same DNS name already exists in zone calindon.com.",
        CHANGED,
        "www.calindon.com.",
    ),
    (
        "amazon.aws #2694",
        "[RRSet of type CNAME with DNS name aws.ansible.com. is not permitted as it conflicts with other records with"
        " the same DNS name in zone ansible.com.]",
        CHANGED,
        "aws.ansible.com.",
    ),
    ("DNSControl #1114", "[Number of records limit of 1000 exceeded.]", NEVER, ""),
    ("DNSControl #908", "[RDATA character limit of 32000 exceeded.]", NEVER, ""),
    ("external-dns #368", "Cannot have more than 4000 changes in a batch.", NEVER, ""),
    ("rancher #10253", "Cannot have more than 100 records in a RRSet.", NEVER, ""),
    ("DNSControl #908", "[Exceeded limit MAX_RRSETS_BY_ZONE for zone: Z3HTIAEKH5JU4F]", FULL, ""),
    (
        "external-dns #4241",
        "[The request contains an invalid set of changes for a resource record set 'A t.internal.domain.com.']",
        NEVER,
        "t.internal.domain.com.",
    ),
    (
        "external-dns #1517",
        "[FATAL problem: DomainLabelEmpty (Domain label is empty) encountered with '.example.com']",
        NEVER,
        "",
    ),
    (
        "boto3 #1462",
        "[Invalid Resource Record: FATAL problem: CharacterStringTooLong (Value is too long) encountered with '\"v='",
        NEVER,
        "",
    ),
]


@pytest.mark.parametrize(("report", "message", "verdict", "owner"), TEXTS, ids=[f"{t[0]}-{t[2].value}" for t in TEXTS])
def test_each_text_has_its_verdict(report: str, message: str, verdict: Verdict, owner: str) -> None:
    """As reported, in brackets or without; and whose record set it is about, where the text says so."""
    (found,) = reasons(message)
    assert (found.verdict, found.owner) == (verdict, owner)


def test_several_reasons_come_in_one_list() -> None:
    """external-dns #5939: two record sets in one bracketed list, whose own texts have commas."""
    message = (
        "[Tried to create resource record set [name='a.example.com.', type='TXT'] but it already exists, Tried to"
        " create resource record set [name='b.example.com.', type='TXT'] but it already exists, Number of records limit"
        " of 1000 exceeded.]"
    )
    assert [(each.verdict, each.owner) for each in reasons(message)] == [
        (CHANGED, "a.example.com."),
        (CHANGED, "b.example.com."),
        (NEVER, ""),
    ]


def test_all_texts_together_are_told_apart() -> None:
    """Whatever is listed beside whatever, each keeps its verdict."""
    bare = [text.removeprefix("[").removesuffix("]") if text[-2:] != "']" else text for _, text, _, _ in TEXTS]
    bare = [text[1:-1] if text.startswith("[") else text for text in bare]
    assert [each.verdict for each in reasons(f"[{', '.join(bare)}]")] == [verdict for _, _, verdict, _ in TEXTS]


def test_a_text_nobody_has_seen_is_never_taken_for_a_lost_race() -> None:
    """A batch that is refused for an unknown reason isn't sent again and again."""
    assert [each.verdict for each in reasons("[Something new]")] == [NEVER]
    assert reasons("[]") == []


STALE = "Tried to create resource record set [name='n0.example.test.', type='A'] but it already exists"


@pytest.mark.parametrize(
    ("message", "count", "kind", "word"),
    [
        ("[Something new]", 1, Refused, "Something new"),
        ("[]", 1, Refused, "Route 53"),
        (f"[{STALE}, Cannot have more than 100 records in a RRSet.]", 1, Refused, "more than 100 records"),
        ("[Exceeded limit MAX_RRSETS_BY_ZONE for zone: Z1]", 1, Misconfigured, "MAX_RRSETS_BY_ZONE"),
        ("[Invalid Resource Record: FATAL problem: DomainLabelEmpty]", 2, Refused, "2 endpoints at once"),
    ],
    ids=["unknown", "none", "stale and too big", "full", "of two"],
)
def test_only_a_batch_refused_for_what_changed_alone_is_read_again(
    stage: Route53Stage, message: str, count: int, kind: type[PortError], word: str
) -> None:
    """The port raises what the texts mean: taken for a lost race, such a batch would be sent for ever."""

    async def act() -> None:
        port = stage.port()
        await port.read()
        batch = tuple(change(Live(f"n{index}.example.test"), 1, "192.0.2.1") for index in range(count))
        fault = Fault("error", "ChangeResourceRecordSets", 1, 1, "InvalidChangeBatch", 400, message)
        stage.server.faults.add(fault)
        with pytest.raises(kind, match=word) as caught:
            await port.commit(batch)
        assert type(caught.value) is kind
        assert await port.commit(batch)

    stage.run(act)


def test_of_several_endpoints_one_may_be_to_blame() -> None:
    """external-dns #1517: so the batch is split; alone, a full zone is a person's business and a bad name final."""
    found = reasons("[Exceeded limit MAX_RRSETS_BY_ZONE for zone: Z1]")
    assert isinstance(refused(found, "the write of x", 50), Refused)
    alone = refused(found, "the write of x", 1)
    assert isinstance(alone, Misconfigured)
    assert "10,000" in alone.means
    assert alone.unchanged
    bad = refused(reasons("[FATAL problem: DomainLabelEmpty (Domain label is empty)]"), "the write of x", 1)
    assert isinstance(bad, Refused)
    assert "DomainLabelEmpty" in bad.what


WRITE = Asked("ChangeResourceRecordSets", "the write of api.example.com, gen 42 -> 43", "Z0123456789ABC", writes=True)
CODES = [
    ("AccessDenied", "User: arn:aws:iam::1:user/x is not authorized", 403, Misconfigured, "doctor --iam-policy"),
    ("NoSuchHostedZone", "No hosted zone found with ID: Z0", 404, Misconfigured, "zone_id"),
    ("InvalidClientTokenId", "The security token included in the request is invalid.", 403, Misconfigured, "sts"),
    ("SignatureDoesNotMatch", "The request signature we calculated does not match", 403, Misconfigured, "secret"),
    ("SignatureDoesNotMatch", "Signature expired: 20261130T000000Z is now earlier than", 403, Misconfigured, "clock"),
    ("InvalidSignatureException", "Signature not yet current: 2026", 403, Misconfigured, "clock"),
    ("RequestExpired", "Request has expired.", 400, Misconfigured, "NTP"),
    ("ExpiredToken", "The security token included in the request is expired", 403, Misconfigured, "renew"),
    ("MissingAuthenticationToken", "Missing Authentication Token", 403, Misconfigured, "credentials"),
    ("OptInRequired", "The AWS Access Key Id needs a subscription", 403, Misconfigured, "sign up"),
    ("Throttling", "Rate exceeded", 400, Unavailable, "requests under"),
    ("PriorRequestNotComplete", "The request was rejected because", 400, Unavailable, "requests under"),
    ("ServiceUnavailable", "Service Unavailable", 503, Unavailable, "health"),
    ("InternalFailure", "We encountered an internal error", 500, Unavailable, "health"),
    ("InvalidInput", "Invalid XML ; javax.xml", 400, Refused, "nothing of it was done"),
]


@pytest.mark.parametrize(("code", "message", "status", "kind", "word"), CODES)
def test_each_code_says_what_to_do(code: str, message: str, status: int, kind: type[PortError], word: str) -> None:
    """Common Errors and the action's own: what went wrong, where, and what to do about it."""
    found = complaint(code, message, status, WRITE)
    assert type(found) is kind
    assert "api.example.com" in found.where
    assert word in found.advice
    assert found.unchanged is (kind is not Unavailable)


def test_denied_names_action_zone_and_who_we_are() -> None:
    """The three things that a person who mends it has to know; none of them a secret."""
    message = (
        "User: arn:aws:sts::111122223333:assumed-role/fencepost/i-0abc is not authorized to perform:"
        " route53:ChangeResourceRecordSets on resource: arn:aws:route53:::hostedzone/Z0123456789ABC because no"
        " identity-based policy allows the route53:ChangeResourceRecordSets action"
    )
    asked = Asked(WRITE.action, WRITE.where, WRITE.zone_id, True, True, "from the instance's role")
    found = complaint("AccessDenied", message, 403, asked)
    assert found.what == ("Route 53: AccessDenied, route53:ChangeResourceRecordSets on hosted zone Z0123456789ABC")
    assert found.doing == ("the write of api.example.com, gen 42 -> 43; reading works. Live records are unchanged.")
    assert found.means == (
        "signed in as arn:aws:sts::111122223333:assumed-role/fencepost/i-0abc, from the instance's role"
    )
    assert found.hint.startswith("fencepost doctor --iam-policy")


def test_a_batch_denied_for_one_name_is_split() -> None:
    """An endpoint that the policy doesn't name yet mustn't hold up those it does."""
    found = complaint("AccessDenied", "User: arn:aws:iam::1:user/x", 403, structs.replace(WRITE, count=50))
    assert isinstance(found, Refused)
    assert "smaller batches" in found.hint


def test_no_credentials_says_where_they_are_looked_for() -> None:
    """botocore's "Unable to locate credentials" alone sends people searching."""
    found = no_credentials("Unable to locate credentials", WRITE)
    assert "instance's role" in found.means
    assert found.unchanged
