"""How a stand-in behaves, and what may go wrong with it on purpose."""

import msgspec

from fencepost.dev.route53 import limits

KINDS = ("error", "drop", "delay", "late", "lost", "cut")


class Fault(msgspec.Struct, frozen=True):
    """Something that goes wrong with each `every`-th call of `action` (None: any), `times` times (None: always).

    `kind` is

        error   refused with `code`, `status` and `message`; nothing is done
        drop    the connection closes; nothing is done
        delay   waits `delay_s`, then does it and answers
        late    does it, waits `delay_s`, then answers
        lost    does it, then the connection closes without an answer
        cut     does it, then the connection closes halfway through the answer

    After the last three, and `drop`, a client can't tell what was done: only reading can.
    """

    kind: str
    action: str | None = None
    every: int = 1
    times: int | None = None
    code: str = "ServiceUnavailable"
    status: int = 503
    message: str = "The service is temporarily unavailable."
    delay_s: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS or self.every < 1:
            raise ValueError(f"a fault's kind is one of {', '.join(KINDS)}, and every is at least 1")


class Route53Settings(msgspec.Struct, frozen=True, kw_only=True):
    """A stand-in's settings; times in seconds.

    `access_keys`: key ids that are let in (None: any, so long as the request is signed). `denied`: actions answered
    with AccessDenied. `requests_per_s`: None turns throttling off. `batch_s`: how long a batch takes; another one for
    the same zone meanwhile gets PriorRequestNotComplete. `insync_s`: how long a change stays PENDING. `dns`: where DNS
    is answered (None: nowhere). `data`: a file that keeps zones over a restart (None: memory only).
    """

    listen: str = "127.0.0.1:0"
    dns: str | None = None
    zones: tuple[str, ...] = ()
    data: str | None = None
    access_keys: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()
    requests_per_s: int | None = limits.REQUESTS_PER_S
    batch_s: float = 0.0
    insync_s: float = 0.5
