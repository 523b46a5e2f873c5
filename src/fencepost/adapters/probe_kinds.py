"""From a pool's settings to a prober: the one place that knows the kinds."""

from __future__ import annotations

from collections.abc import Callable

from fencepost.adapters.probe import Check, Prober, ProbeResult, ProbeSettings, ProbeTarget
from fencepost.adapters.probe_http import capacity_check, http_check
from fencepost.adapters.probe_tcp import tcp_check

KINDS: dict[str, Callable[[ProbeSettings], Callable[[ProbeTarget], Check]]] = {"http": http_check, "tcp": tcp_check}
"""Each kind of probe by its name in a probe's url."""


def open_prober(settings: ProbeSettings, on_results: Callable[[list[ProbeResult]], None], *, salt: str = "") -> Prober:
    """A prober, not yet started. Raises ValueError for a kind there is none of."""
    kind = KINDS.get(settings.kind)
    if kind is None:
        raise ValueError(f"no probe of kind {settings.kind!r}; there are {', '.join(sorted(KINDS))}")
    return Prober(settings, kind(settings), on_results, salt=salt, capacity_check=capacity_check(settings))
