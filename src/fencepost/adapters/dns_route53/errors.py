"""What Route 53's refusals mean: of the texts of a refused batch, and of every error code.

A refused batch comes as one InvalidChangeBatch with all its reasons in one bracketed list (external-dns #5939). Reasons
are of three kinds. *Changed*: something isn't as the batch requires; read it again. *Full*: the zone has no room for
more sets, which AWS can raise. All others mean that the batch can never be right as it is.

For the rest the rule is that of the other providers: would the same request be taken in a minute, unchanged? Never:
``Refused``. Not until a person has changed a right, a key, a clock or a name: ``Misconfigured``. Perhaps:
``Unavailable``. No secret is in any of them: Route 53 repeats none, and what it says is cut short.
"""

import re
from collections.abc import Iterable
from enum import Enum

from msgspec import Struct

from fencepost.ports import Misconfigured, PortError, Refused, Unavailable

THROTTLED = frozenset(("Throttling", "ThrottlingException", "RequestThrottled", "TooManyRequestsException"))
BUSY = "PriorRequestNotComplete"
_TEXT_MOST = 400


class Verdict(Enum):
    """What a reason means for the batch."""

    CHANGED = "changed"
    FULL = "full"
    NEVER = "never"


class Reason(Struct, frozen=True):
    """One reason of a refused batch. ``owner`` is the record name it is about, "" if it names none."""

    verdict: Verdict
    text: str
    owner: str = ""


_CHANGED = (
    "but the values provided do not match the current values",  # external-dns #732
    "but it was not found",  # boto #2887
    "but it already exists",  # terraform-provider-aws #7918
    "conflicting RRSet of type",  # a CNAME stands there: terraform-aws-open-next #24
    "as it conflicts with other records",  # amazon.aws #2694
    "as other RRSets exist with the same name and type",  # routed sets stand there
    "set exists with the same name and type",  # "as a non-weighted set exists": external-dns #4345
    "must contain the same TTL",  # somebody's weighted set stands beside ours
)
_BEGINS = (
    "Tried to", "RRSet ", "The request contains", "Number of records", "RDATA character", "Invalid ", "FATAL problem",
    "Cannot ", "Exceeded limit", "A HostedZone", "Duplicate ", "The resource", "The specified",
)  # fmt: skip
_SPLIT = re.compile(r", (?=" + "|".join(map(re.escape, _BEGINS)) + ")")
_OWNERS = (re.compile(r"\[name='([^']+)'"), re.compile(r"DNS name ([^\s,]+\.)[\s,]"), re.compile(r"'[A-Z]+ ([^\s']+)'"))


def reasons(message: str) -> list[Reason]:
    """The reasons in an InvalidChangeBatch's message, each with its verdict."""
    text = message.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    return [_reason(each.strip()) for each in _SPLIT.split(text) if each.strip()]


def _reason(text: str) -> Reason:
    verdict = Verdict.NEVER
    if any(part in text for part in _CHANGED):
        verdict = Verdict.CHANGED
    elif text.startswith("Exceeded limit MAX_RRSETS_BY_ZONE"):  # DNSControl #908
        verdict = Verdict.FULL
    owner = next((found[1] for pattern in _OWNERS if (found := pattern.search(text))), "")
    return Reason(verdict, text, owner)


def refused(found: Iterable[Reason], doing: str, count: int) -> PortError:
    """The exception for a batch of ``count`` endpoints that isn't (only) refused for what changed.

    Of several endpoints one may be to blame, so the batch is to be split; a full zone takes changes of what is there.
    """
    listed = [each for each in found if each.verdict is not Verdict.CHANGED]
    text = _short("; ".join(each.text for each in listed))
    if count > 1:
        return Refused(
            f"Route 53 refuses {count} endpoints at once: {text}",
            where=doing,
            hint="one of them may be at fault: they are tried in smaller batches",
            unchanged=True,
        )
    if any(each.verdict is Verdict.FULL for each in listed):
        return Misconfigured(
            f"Route 53: {text}",
            where=doing,
            means="the hosted zone holds as many record sets as its quota allows (10,000 unless raised)",
            hint="remove sets that nobody needs, or ask AWS for more (Service Quotas, Route 53)",
            unchanged=True,
        )
    return Refused(
        f"Route 53: {text}", where=doing, hint="give the endpoint another name or other addresses", unchanged=True
    )


_CLOCK = "this machine's clock and AWS's differ by more than five minutes"
_KEY = "check which credentials are in force (`aws sts get-caller-identity`) and put the right ones in their place"
_POLICY = "fencepost doctor --iam-policy    prints the least policy, limited to these names"

_MISCONFIGURED = {
    "InvalidClientTokenId": ("AWS knows no such access key; it was deleted, disabled, or is another partition's", _KEY),
    "UnrecognizedClientException": ("AWS knows no such access key; it was deleted or disabled", _KEY),
    "InvalidAccessKeyId": ("AWS knows no such access key; it was deleted or disabled", _KEY),
    "SignatureDoesNotMatch": ("the secret isn't the one that belongs to the access key", _KEY),
    "InvalidSignatureException": ("the secret isn't the one that belongs to the access key", _KEY),
    "IncompleteSignature": ("the request's signature was spoilt on the way, by a proxy perhaps", "look at the proxy"),
    "MissingAuthenticationToken": ("the request came without credentials", _KEY),
    "ExpiredToken": ("the temporary credentials have run out and nobody renewed them", "renew them, or use a role"),
    "ExpiredTokenException": (
        "the temporary credentials have run out and nobody renewed them",
        "renew them, or use a role",
    ),
    "RequestExpired": (_CLOCK, "set it by NTP"),
    "NoSuchHostedZone": (
        "the hosted zone was deleted, or is another account's",
        "name the right one by zone_id under [dns], or sign in to its account",
    ),
    "OptInRequired": ("the account hasn't signed up for Route 53", "sign up, or sign in to another account"),
}
_DENIED = frozenset(("AccessDenied", "AccessDeniedException", "NotAuthorizedException"))
_USER = re.compile(r"User: (arn:[\w:./@+=,-]+)")


class Asked(Struct, frozen=True):
    """What a request was for: for the errors.

    ``from_where`` says where the credentials came from, ``count`` how many endpoints a write is about.
    """

    action: str
    where: str
    zone_id: str = ""
    writes: bool = False
    reading_works: bool = False
    from_where: str = ""
    count: int = 1

    @property
    def on(self) -> str:
        """What it was about."""
        return f" on hosted zone {self.zone_id}" if self.zone_id else ""


def complaint(code: str, message: str, status: int, asked: Asked) -> PortError:
    """The exception for an error code that isn't a refused batch's."""
    if code in _DENIED:
        return _denied(message, asked)
    if code in ("SignatureDoesNotMatch", "InvalidSignatureException") and re.search(r"expired|not yet", message):
        code = "RequestExpired"
    if code in _MISCONFIGURED:
        means, hint = _MISCONFIGURED[code]
        return Misconfigured(
            f"Route 53: {code}, route53:{asked.action}{asked.on}",
            where=asked.where,
            means=f"{means}; they came {asked.from_where}" if asked.from_where and hint == _KEY else means,
            hint=hint,
            unchanged=asked.writes,
        )
    if code in THROTTLED or "Rate exceeded" in message or code == BUSY:
        return Unavailable(
            f"Route 53: {code}, again and again",
            where=asked.where,
            hint="others use the account's five requests a second too; if it lasts, lower requests under [dns]",
        )
    if status < 500 and asked.writes:
        return Refused(
            f"Route 53: {code}: {_short(message)}",
            where=asked.where,
            hint="this request can't be right; nothing of it was done",
            unchanged=True,
        )
    return Unavailable(
        f"Route 53: {code}: {_short(message)}", where=asked.where, hint="if it lasts: https://health.aws.amazon.com"
    )


def _denied(message: str, asked: Asked) -> PortError:
    """A policy that names what may be written refuses a whole batch for one name that isn't in it yet."""
    if asked.count > 1:
        return Refused(
            f"Route 53: AccessDenied to {asked.count} endpoints at once, route53:{asked.action}{asked.on}",
            where=asked.where,
            hint="one of them may be missing in the policy: they are tried in smaller batches",
            unchanged=True,
        )
    user = _USER.search(message)
    who = f"signed in as {user[1]}" if user else "signed in"
    if asked.from_where:
        who += f", {asked.from_where}"
    works = "; reading works" if asked.writes and asked.reading_works else ""
    return Misconfigured(
        f"Route 53: AccessDenied, route53:{asked.action}{asked.on}",
        where=f"{asked.where}{works}",
        means=who,
        hint=_POLICY,
        unchanged=asked.writes,
    )


def no_credentials(why: str, asked: Asked) -> Misconfigured:
    """No credentials, or none that can be used. ``why`` is the library's word, which repeats no secret."""
    return Misconfigured(
        f"Route 53: {_short(why)}",
        where=asked.where,
        means="credentials are found as AWS's own tools find them: environment, shared files, the instance's role",
        hint="give this machine a role, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for its service",
        unchanged=asked.writes,
    )


def no_answer(why: str, asked: Asked) -> Unavailable:
    """Nothing came back, or nothing that makes sense: a write's outcome is unknown."""
    return Unavailable(
        f"Route 53: {_short(why)}",
        where=asked.where,
        hint="if it lasts: is this machine on the network, and https://health.aws.amazon.com green?",
    )


def _short(text: str) -> str:
    return text if len(text) <= _TEXT_MOST else f"{text[:_TEXT_MOST]}…"
