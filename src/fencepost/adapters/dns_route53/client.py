"""Requests to Route 53's API, each one once: botocore's own retries are off.

botocore sends a write again when its answer is lost. Ours would then be refused for what it itself had done, and a
refusal means that somebody else did something. So nothing is sent twice here but what Route 53 itself said it didn't
do: "Throttling" and "PriorRequestNotComplete", after a pause (external-dns #1293, octodns #96). An answer that doesn't
come leaves a write's outcome unknown: ``Unavailable``, and the zone is read again.

Signatures, credentials and XML are aiobotocore's, AWS's own library made asynchronous.
"""

import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from functools import lru_cache
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from aiohttp import ClientError
from botocore import exceptions as aws
from botocore.loaders import create_loader
from botocore.parsers import ResponseParserError
from msgspec import structs

from fencepost.adapters.dns_route53.errors import BUSY, THROTTLED, Asked, complaint, no_answer, no_credentials
from fencepost.adapters.dns_route53.host_cache import now
from fencepost.adapters.dns_route53.pace import Pace
from fencepost.adapters.dns_route53.settings import Route53Settings
from fencepost.core.instant import SECOND, Instant
from fencepost.ports import Misconfigured

ATTEMPTS_MOST = 8
"""So often a request that surely wasn't carried out is sent; the pauses between add up to some half a minute."""
_WITHOUT_CREDENTIALS = (
    aws.NoCredentialsError,
    aws.PartialCredentialsError,
    aws.CredentialRetrievalError,
    aws.TokenRetrievalError,
    aws.UnauthorizedSSOTokenError,
    aws.SSOTokenLoadError,
    aws.ProfileNotFound,
)
_FROM = {
    "env": "from the environment",
    "shared-credentials-file": "from the shared credentials file",
    "config-file": "from AWS's config file",
    "iam-role": "from the instance's role",
    "container-role": "from the container's role",
    "assume-role": "from a role assumed by profile",
    "assume-role-with-web-identity": "from a web identity's role",
    "sso": "from single sign-on",
    "custom-process": "from a credential process",
}


NONSENSE = "its answer makes no sense"


class InvalidBatch(Exception):  # noqa: N818  an answer to be looked into
    """A batch was refused; ``message`` has the reasons."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Outrun(Exception):  # noqa: N818  as above
    """A request wasn't sent: before its turn came it wasn't wanted any more."""


class Client:
    """One connection pool to the API, opened at the first request.

    ``calls`` counts what was sent, by action; ``sent`` is when the last was, nanoseconds since 1970.
    """

    def __init__(self, settings: Route53Settings, pace: Pace, sleep: Callable[[float], Awaitable[object]]) -> None:
        self._settings = settings
        self._pace = pace
        self._sleep = sleep
        self._stack = AsyncExitStack()
        self._client: Any = None
        self._from_where = ""
        self._read_once = False
        self.calls: dict[str, int] = {}
        self.sent: Instant = 0

    async def ask(
        self,
        action: str,
        asked: Asked,
        *,
        urgent: bool,
        wanted: Callable[[], bool] = lambda: True,
        **arguments: Any,
    ) -> dict[str, Any]:
        """The answer of one action. ``urgent`` requests go before those of the rolling scan; ``wanted`` says, each time
        before one is sent, whether it still is to be.

        Raises :class:`InvalidBatch`, :class:`Outrun` or one of the ports' exceptions.
        """
        for attempt in range(1, ATTEMPTS_MOST + 1):
            if not await self._pace.turn(urgent=urgent, wanted=wanted):
                raise Outrun
            try:
                answer = await self._once(action, arguments)
            except aws.ClientError as error:
                code, message, status = _told(error)
                if code == "InvalidChangeBatch":
                    raise InvalidBatch(message) from None
                if (code in THROTTLED or code == BUSY or "Rate exceeded" in message) and attempt < ATTEMPTS_MOST:
                    await self._held_off(attempt, throttled=code != BUSY)
                    continue
                raise complaint(code, message, status, self._seen(asked)) from None
            except _WITHOUT_CREDENTIALS as error:
                raise no_credentials(str(error), asked) from None
            except (aws.HTTPClientError, aws.ConnectionError, ClientError, ResponseParserError, OSError) as error:
                raise no_answer(_why(error, self._settings.timeout / SECOND), asked) from None
            except ValueError:  # botocore's parser, of a number that is none
                raise no_answer(NONSENSE, asked) from None
            except aws.ParamValidationError as error:
                raise complaint("InvalidInput", str(error), 400, asked) from None
            except aws.BotoCoreError as error:
                raise Misconfigured(
                    f"Route 53: {type(error).__name__}", where=asked.where, hint="look at AWS's config files"
                ) from None
            if not _whole(answer, _ALWAYS[action]):
                raise no_answer(NONSENSE, asked)
            self._pace.went_well()
            self._read_once |= not asked.writes
            return answer
        raise AssertionError("the last attempt answers or raises")

    async def close(self) -> None:
        """Let go of sockets."""
        stack, self._stack, self._client = self._stack, AsyncExitStack(), None
        await stack.aclose()

    async def _once(self, action: str, arguments: dict[str, Any]) -> dict[str, Any]:
        client = await self._opened()
        self.calls[action] = self.calls.get(action, 0) + 1
        self.sent = now()
        answer: dict[str, Any] = await getattr(client, _METHODS[action])(**arguments)
        return answer

    async def _opened(self) -> Any:
        if self._client is None:
            patience = self._settings.timeout / SECOND
            config = AioConfig(
                retries={"mode": "standard", "total_max_attempts": 1},
                connect_timeout=min(patience, 5),
                read_timeout=patience,
                user_agent_extra="fencepost",
            )
            session = get_session()
            session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
            if self._settings.endpoint.startswith("http://"):
                # A stand-in on this machine (settings take plain http for nothing else): real ones are not for it.
                session.set_credentials("stand-in", "stand-in")
            credentials = await session.get_credentials()
            self._from_where = _FROM.get(getattr(credentials, "method", ""), "")
            made = session.create_client(
                # Route 53 is one for a partition (China, GovCloud, the rest): a region only says which.
                "route53",
                region_name=session.get_config_variable("region") or "us-east-1",
                endpoint_url=self._settings.endpoint or None,
                config=config,
            )
            self._client = await self._stack.enter_async_context(made)
        return self._client

    async def _held_off(self, attempt: int, *, throttled: bool) -> None:
        """Wait longer each time; half is chance, so that several don't come back together."""
        pause = min(0.25 * 2**attempt, 8.0)
        if throttled:
            self._pace.was_throttled()
        await self._sleep(pause / 2 + random.uniform(0, pause / 2))  # noqa: S311  jitter

    def _seen(self, asked: Asked) -> Asked:
        return structs.replace(asked, reading_works=self._read_once, from_where=self._from_where)


@lru_cache(maxsize=4)
def _loader(path: str | None) -> Any:
    """AWS's descriptions of its API, read once a process: 0.2 s for each client otherwise."""
    return create_loader(path)


_METHODS = {
    "ChangeResourceRecordSets": "change_resource_record_sets",
    "ListResourceRecordSets": "list_resource_record_sets",
    "ListHostedZonesByName": "list_hosted_zones_by_name",
    "GetHostedZone": "get_hosted_zone",
}
"""Every action that is ever asked for: the least policy allows these and no other."""
ACTIONS = frozenset(_METHODS)
_ALWAYS: dict[str, Mapping[str, Any]] = {
    "ChangeResourceRecordSets": {"ChangeInfo": {}},
    "ListResourceRecordSets": {
        "IsTruncated": {},
        "ResourceRecordSets": {"Name": {}, "Type": {}, "ResourceRecords?": {"Value": {}}},
    },
    "ListHostedZonesByName": {"HostedZones": {"Id": {}, "Name": {}}},
    "GetHostedZone": {"HostedZone": {"Id": {}, "Name": {}}},
}
"""What each answer has always (API reference), of what is read here; with "?" where it may be missing.

A captive portal or a proxy says 200 too, and botocore makes an empty answer of any XML that it doesn't know.
"""


def _whole(answer: Any, wanted: Mapping[str, Any]) -> bool:
    """Whether an answer, or each element of a list, has all that it always has."""
    if isinstance(answer, list):
        return all(_whole(each, wanted) for each in answer)
    if not isinstance(answer, Mapping):
        return not wanted
    return all(
        _whole(answer[key], more) if (key := name.removesuffix("?")) in answer else name.endswith("?")
        for name, more in wanted.items()
    )


def _told(error: aws.ClientError) -> tuple[str, str, int]:
    said = error.response.get("Error", {})
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return said.get("Code", "Unknown"), said.get("Message", "") or "", status


def _why(error: Exception, patience_s: float) -> str:
    if isinstance(error, aws.ConnectTimeoutError | aws.ReadTimeoutError | TimeoutError):
        return f"no answer within {patience_s:g} s"
    if isinstance(error, ResponseParserError):
        return NONSENSE
    if isinstance(error, aws.EndpointConnectionError):
        return "its API can't be reached"
    return "the connection broke before the answer was whole"
