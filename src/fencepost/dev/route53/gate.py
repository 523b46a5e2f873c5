"""Who is let in, and how often: what Route 53 looks at before a request's own words.

A signature (Signature Version 4) must be there, be for the service "route53", and name a known key; it isn't computed,
as a stand-in has no secret to keep. Codes are those of the API reference, "Common Errors".
"""

import re
from collections import deque
from collections.abc import Mapping

from fencepost.dev.route53.refusals import ApiError
from fencepost.dev.route53.settings import Route53Settings

_CREDENTIAL = re.compile(r"AWS4-HMAC-SHA256 .*?Credential=([^/,\s]+)/(\d{8})/([^/,\s]+)/([^/,\s]+)/aws4_request")
SECOND_NS = 1_000_000_000


class Gate:
    """Checks before an action. The rate is over any one second, and counts what was let through."""

    def __init__(self, settings: Route53Settings) -> None:
        self._keys = settings.access_keys
        self.denied = settings.denied
        self.requests_per_s = settings.requests_per_s
        self._passed: deque[int] = deque()

    def check(self, action: str, headers: Mapping[str, str], now: int) -> None:
        """Let it through, or raise ApiError."""
        key = self._key(headers.get("authorization", ""))
        if self._keys is not None and key not in self._keys:
            raise ApiError("InvalidClientTokenId", "The security token included in the request is invalid.", 403)
        self._throttle(now)
        if action in self.denied:
            who = "User: arn:aws:iam::123456789012:user/fencepost-dev"
            raise ApiError("AccessDenied", f"{who} is not authorized to perform: route53:{action}", 403)

    def _key(self, authorization: str) -> str:
        if not authorization:
            raise ApiError("MissingAuthenticationToken", "Missing Authentication Token", 403)
        match = _CREDENTIAL.match(authorization)
        if match is None or "Signature=" not in authorization:
            raise ApiError("IncompleteSignature", "Authorization header requires a credential and a signature.", 403)
        if match[4] != "route53":
            scope = "Credential should be scoped to correct service: 'route53'."
            raise ApiError("SignatureDoesNotMatch", scope, 403)
        return match[1]

    def _throttle(self, now: int) -> None:
        if self.requests_per_s is None:
            return
        while self._passed and self._passed[0] <= now - SECOND_NS:
            self._passed.popleft()
        if len(self._passed) >= self.requests_per_s:
            raise ApiError("Throttling", "Rate exceeded")
        self._passed.append(now)
