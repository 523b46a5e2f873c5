"""The same decisions by plain lists, slowly: what the numpy columns are held against."""

from typing import Any

from fencepost.core.admission import AdmissionSettings
from fencepost.core.admission.second_tries import SecondTries
from fencepost.core.instant import HOUR, MILLISECOND, SECOND

NO_LEASE = -(1 << 62)


def settings(limit: int = 4, **more: Any) -> AdmissionSettings:
    """Calls of 40 ms, ten seconds for each; the brake looks once in a thousand hours, so that the limit stands."""
    given: dict[str, Any] = {
        "limit": limit,
        "service": 40 * MILLISECOND,
        "service_p99": 184 * MILLISECOND,
        "service_p999": 276 * MILLISECOND,
        "attempt": 10 * SECOND,
        "window": 1_000 * HOUR,
    }
    return AdmissionSettings(**(given | more))


class PlainAdmission:
    """States by id: idle, waiting, ready, queued, again, renewing, acquiring, leaving."""

    def __init__(self, chosen: AdmissionSettings, size: int) -> None:
        self.settings = chosen
        self.state = ["idle"] * size
        self.due = [0] * size
        self.deadline = [NO_LEASE] * size
        self.dispatched = [0] * size
        self.line: list[int] = []
        self.tries = SecondTries(chosen.retry_share)
        self.rate = chosen.limit * SECOND / chosen.service

    def out(self) -> list[int]:
        """Who is in flight."""
        return [host for host, state in enumerate(self.state) if state in ("renewing", "acquiring", "leaving")]

    def put(self, host: int, state: str) -> None:
        """It is there now, and in line only if that is a place in line."""
        self.state[host] = state
        if host in self.line:
            self.line.remove(host)
        if state in ("queued", "again"):
            self.line.append(host)

    def renew(self, host: int, due: int, deadline: int) -> None:
        """See the real one."""
        self.due[host], self.deadline[host] = due, deadline
        if self.state[host] == "leaving":
            self.state[host] = "renewing"
        elif host not in self.out():
            self.put(host, "waiting")

    def acquire(self, host: int) -> None:
        """See the real one."""
        if self.state[host] == "leaving":
            self.state[host] = "acquiring"
        elif self.state[host] == "idle":
            self.deadline[host] = NO_LEASE
            self.put(host, "queued")

    def drop(self, host: int) -> None:
        """See the real one."""
        self.put(host, "leaving" if host in self.out() else "idle")

    def answered(self, host: int) -> None:
        """See the real one."""
        if host in self.out() or self.state[host] == "again":
            self.put(host, "idle")

    def failed(self, host: int) -> None:
        """See the real one."""
        if host in self.out():
            self.put(host, "idle" if self.state[host] == "leaving" else "again")

    def take(self, now: int, most: int | None) -> list[tuple[int, bool]]:
        """See the real one."""
        hosts = range(len(self.state))
        for host in hosts:
            if self.state[host] == "waiting" and self.due[host] <= now:
                self.state[host] = "ready"
        soonest = now + self.settings.service_p99
        for host in sorted(hosts, key=lambda each: (self.deadline[each], each)):
            if self.state[host] == "ready" and self.deadline[host] < soonest:
                self.deadline[host] = NO_LEASE
                self.put(host, "queued")
        room = self.settings.limit - len(self.out())
        room = room if most is None else min(room, most)
        if room <= 0:
            return []
        ready = sorted((self.deadline[host], host) for host in hosts if self.state[host] == "ready")
        chosen = [(host, False) for _, host in ready[:room]]
        for host, _ in chosen:
            self.state[host] = "renewing"
        chosen += self.from_line(now, soonest, room - len(chosen), len(chosen))
        for host, _ in chosen:
            self.dispatched[host] = now
        return chosen

    def from_line(self, now: int, soonest: int, room: int, renewals: int) -> list[tuple[int, bool]]:
        """In order, second tries as far as they may."""
        self.tries.pass_to(now, 1.0, self.rate)
        alone = not {"ready", "queued"} & set(self.state)
        allowed = self.tries.allowed(alone)
        chosen: list[tuple[int, bool]] = []
        again = 0
        for host in list(self.line):
            second = self.state[host] == "again"
            if len(chosen) == room or (second and again == allowed):
                continue
            again += second
            late = self.deadline[host] < soonest
            self.put(host, "acquiring" if late else "renewing")
            chosen.append((host, late))
        self.tries.spend(again)
        self.tries.first(renewals + len(chosen) - again, self.rate)
        return chosen
