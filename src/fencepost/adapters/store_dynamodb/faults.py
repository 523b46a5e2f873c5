"""DynamoDB's errors as the port's, and what may be tried again.

*Busy*: throttled, or in conflict with another write: nothing happened, and it may be sent again. *Lost*: no answer came
(a timeout, a broken connection, an internal error): it may have happened, now or later. All else is final: what may
pass by itself is ``Unavailable``, what a person must mend ``Misconfigured``.

No text here repeats what AWS says of a signature or a token; only codes and names.
"""

import enum
from collections.abc import Mapping, Sequence
from typing import Any

from botocore import exceptions as boto

from fencepost.ports import Misconfigured, PortError, Unavailable

MAKE_HINT = "a planner makes it; start one (`fencepost up`), or see [store] table and aws_region"
RIGHTS = (
    "dynamodb:DescribeTable, GetItem, BatchGetItem, Query, PutItem, DeleteItem, BatchWriteItem and, for a fleet,"
    " ConditionCheckItem on the table;"
    " the planner also Scan and CreateTable"
)
_BUSY = frozenset({
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "Throttling",
    "RequestLimitExceeded",
    "TransactionConflictException",
    "TransactionInProgressException",
    "ReplicatedWriteConflictException",
    "LimitExceededException",
})  # fmt: skip
UNMET = "ConditionalCheckFailed"
_PASSING = frozenset({
    "None",
    "TransactionConflict",
    "ProvisionedThroughputExceeded",
    "ThrottlingError",
})  # fmt: skip
"""Why a transaction was cancelled that may be sent again."""
_EXPIRED = frozenset({"ExpiredTokenException", "ExpiredToken", "RequestExpired"})
_CREDENTIALS = frozenset({
    "UnrecognizedClientException",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "MissingAuthenticationTokenException",
    "MissingAuthenticationToken",
    "IncompleteSignatureException",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidAccessKeyId",
    "AuthFailure",
})  # fmt: skip
_DENIED = frozenset({"AccessDeniedException", "AccessDenied", "NotAuthorized", "UnauthorizedOperation"})
_UNREACHED = (boto.EndpointConnectionError, boto.ConnectTimeoutError, boto.ProxyConnectionError)
_SILENT = (boto.HTTPClientError, boto.IncompleteReadError, boto.ResponseStreamingError, OSError, TimeoutError)


REQUEST_ERRORS = (boto.ClientError, boto.BotoCoreError, OSError, TimeoutError)
"""All that a request can raise; anything else is a mistake of ours."""


class Kind(enum.Enum):
    """What an error says about the request."""

    BUSY = "nothing happened, and it may be sent again"
    LOST = "it may have happened"
    FINAL = "it did not happen, and won't"


class ConditionError(Exception):
    """A write's condition didn't hold, and nothing happened. ``item`` is what stands there, if it was asked for."""

    def __init__(self, item: Mapping[str, Any] | None) -> None:
        super().__init__("the condition didn't hold")
        self.item = item


class UnmetError(Exception):
    """Conditions of a transaction didn't hold, and nothing happened: ``failed`` says of each of its actions which."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("conditions of a transaction didn't hold")
        self.failed = tuple(reason == UNMET for reason in reasons)


class ExistsError(Exception):
    """The table is there already, or being made."""


class TableMissingError(Exception):
    """There is no such table (any more)."""


class LostError(Exception):
    """No answer came within the time there was: the outcome is unknown. ``problem`` is what to raise of it."""

    def __init__(self, problem: PortError) -> None:
        super().__init__(str(problem))
        self.problem = problem


def code_of(error: BaseException) -> str:
    """AWS's code of an error, "" if AWS didn't answer."""
    if isinstance(error, boto.ClientError):
        return str(error.response.get("Error", {}).get("Code", ""))
    return ""


def reasons_of(error: BaseException) -> Sequence[str]:
    """Why a transaction was cancelled: a code for each of its actions; none for any other error."""
    reasons = error.response.get("CancellationReasons", ()) if isinstance(error, boto.ClientError) else ()
    return tuple(str(reason.get("Code", "None")) for reason in reasons)


def item_of(error: BaseException) -> Mapping[str, Any] | None:
    """What stands where a condition didn't hold, if it was asked for."""
    item: Mapping[str, Any] | None = error.response.get("Item") if isinstance(error, boto.ClientError) else None
    return item


def status_of(error: BaseException) -> int:
    """The HTTP status of AWS's answer, 0 if there was none."""
    if isinstance(error, boto.ClientError):
        return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    return 0


def kind_of(error: BaseException) -> Kind:
    """What an error says about the request."""
    if code_of(error) in _BUSY or isinstance(error, _UNREACHED):
        return Kind.BUSY
    if code_of(error) == "TransactionCanceledException" and _PASSING.issuperset(reasons_of(error)):
        return Kind.BUSY
    if isinstance(error, boto.SSLError):
        return Kind.FINAL
    if status_of(error) >= 500 or isinstance(error, _SILENT):
        return Kind.LOST
    return Kind.FINAL


def blames_credentials(error: BaseException) -> bool:
    """Whether other credentials could help: they are read anew then."""
    code = code_of(error)
    return code in _EXPIRED | _CREDENTIALS | _DENIED or isinstance(error, _no_credentials())


def translated(error: BaseException, operation: str, where: str) -> PortError:
    """The port's exception for one of AWS's or botocore's."""
    code = code_of(error)
    if code in _BUSY:
        hint = "look at the table's capacity and throttling in CloudWatch; on-demand billing needs no setting"
        return Unavailable(f"DynamoDB throttles {operation} ({code})", where=where, hint=hint)
    if code in _DENIED:
        what = f"{operation} is denied by AWS"
        return Misconfigured(what, where=where, hint=f"the role needs {RIGHTS}")
    if code in _EXPIRED:
        hint = "renew them; they are read again at the next try. If they are new, set this host's clock"
        return Misconfigured("the AWS credentials have expired", where=where, hint=hint)
    if code in _CREDENTIALS:
        hint = "look at AWS_PROFILE, AWS_ACCESS_KEY_ID and the files in ~/.aws of fencepost's user, and at the clock"
        return Misconfigured(f"AWS doesn't accept the credentials ({code})", where=where, hint=hint)
    if code == "ResourceNotFoundException":
        return missing(where)
    if status_of(error) >= 500:
        return Unavailable(f"DynamoDB failed at {operation} ({code or status_of(error)})", where=where, hint=_WAIT)
    if code:
        said = "" if not isinstance(error, boto.ClientError) else str(error.response["Error"].get("Message", ""))[:200]
        hint = "if table and keys are fencepost's, this is a mistake in fencepost"
        return Misconfigured(f"DynamoDB refuses {operation} ({code}: {said})", where=where, hint=hint)
    return _unanswered(error, operation, where)


_WAIT = "roles go on by themselves once DynamoDB answers; nothing that was committed is lost"


def _no_credentials() -> tuple[type[BaseException], ...]:
    return (
        boto.NoCredentialsError,
        boto.PartialCredentialsError,
        boto.CredentialRetrievalError,
        boto.TokenRetrievalError,
        boto.SSOError,
        boto.ProfileNotFound,
        boto.NoAuthTokenError,
    )


def _unanswered(error: BaseException, operation: str, where: str) -> PortError:
    if isinstance(error, boto.NoRegionError):
        return Misconfigured("no AWS region is named", where=where, hint='write aws_region = "…" in [store]')
    if isinstance(error, boto.CredentialRetrievalError):
        hint = "look at the instance's role, or at the program that gives the credentials"
        return Unavailable("the AWS credentials can't be fetched", where=where, hint=hint)
    if isinstance(error, _no_credentials()):
        hint = "give fencepost's user a role or credentials: AWS_PROFILE, AWS_ACCESS_KEY_ID, ~/.aws or the host's role"
        return Misconfigured(f"there are no usable AWS credentials ({type(error).__name__})", where=where, hint=hint)
    if isinstance(error, boto.SSLError):
        hint = "look at the clock, AWS_CA_BUNDLE and what stands between this host and AWS"
        return Misconfigured("DynamoDB's certificate isn't accepted", where=where, hint=hint)
    if isinstance(error, _UNREACHED):
        hint = f"look at the network and at AWS_ENDPOINT_URL_DYNAMODB if it is set; {_WAIT}"
        return Unavailable("DynamoDB can't be reached", where=where, hint=hint)
    if isinstance(error, _SILENT):
        return Unavailable(f"DynamoDB didn't answer {operation} ({type(error).__name__})", where=where, hint=_WAIT)
    return Misconfigured(
        f"{operation} can't be sent ({type(error).__name__})", where=where, hint="look at AWS's own settings in ~/.aws"
    )


def throttled(operation: str, where: str) -> Unavailable:
    """DynamoDB takes less than we send, for longer than we wait."""
    hint = "look at the table's capacity and throttling in CloudWatch; on-demand billing needs no setting"
    return Unavailable(f"DynamoDB throttles {operation}", where=where, hint=hint)


def missing(where: str) -> Unavailable:
    """The table isn't there, and we may not make one."""
    return Unavailable("the store's table isn't there", where=where, hint=MAKE_HINT)


def damaged(where: str, what: str) -> Misconfigured:
    """An item holds something else than this version writes."""
    return Misconfigured(
        f"the store is damaged or another version's ({what})",
        where=where,
        hint="run the fencepost that wrote it; else name another table under [store]: a new store adopts what stands"
        " in DNS",
    )
