"""What the API answers when it refuses: a code, an HTTP status, and words.

Codes and statuses are those of the Route 53 API reference (`Common Errors`, and each action's own list). The body is

    <ErrorResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/">
      <Error><Type>Sender</Type><Code>…</Code><Message>…</Message></Error><RequestId>…</RequestId>
    </ErrorResponse>

as reports show it (boto #2887, stalwartlabs/dns-update #44). The API reference also shows an ``InvalidChangeBatch``
root with a list of messages; what clients report is the form above with the list in brackets, so that is what is sent.
"""

from collections.abc import Sequence


class ApiError(Exception):
    """A refusal. `status` is HTTP's."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status

    @property
    def receiver(self) -> bool:
        """Whether it is the service's fault, not the sender's."""
        return self.status >= 500


def invalid_input(message: str) -> ApiError:
    """A request that isn't well put."""
    return ApiError("InvalidInput", message)


def malformed(message: str) -> ApiError:
    """A body that isn't the XML asked for."""
    return ApiError("MalformedInput", message)


def no_such_zone(zone: str) -> ApiError:
    """A hosted zone that isn't there."""
    return ApiError("NoSuchHostedZone", f"No hosted zone found with ID: {zone}", 404)


def invalid_change_batch(messages: Sequence[str]) -> ApiError:
    """A batch of which nothing was done, with every reason in one bracketed list (external-dns #5939)."""
    return ApiError("InvalidChangeBatch", f"[{', '.join(messages)}]")
