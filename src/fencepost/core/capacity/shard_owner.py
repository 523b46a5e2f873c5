"""Who owns a shard: one row, an owner drawn at each start, an epoch that only rises, and a beat.

Whoever sees the beat stand still for a while takes the shard over, by raising the epoch: from then on no write under
the former claim applies, and no order under its tokens is obeyed. No clock is compared; a manager that is merely slow
loses its shard and finds out at its next write, and nothing it had under way does harm.
"""

from enum import Enum

from msgspec import Struct, structs

from fencepost.core.capacity.lease_calls import Effect, LeaseSettings, Outdated, ReadShard, ShardRead, WriteShard
from fencepost.core.capacity.lease_columns import LONG_AGO
from fencepost.core.capacity.rows import ShardRow
from fencepost.core.instant import Duration, Instant


class Standing(Enum):
    """What a look at the row, or a write of it, meant for what is known of hosts."""

    SAME = "same"
    TAKEN = "taken"
    RAISED = "raised"
    LOST = "lost"


class ShardOwner(Struct, gc=False):
    """One manager's knowledge of its shard's row.

    ``claimed`` is the epoch of the last row it asked to write in this life of the store, so that a write whose answer
    was lost is known for its own. ``asking``: a call about the row is under way. ``above`` is an epoch that a host has
    met, beyond ours: until the row is raised over it nothing is sent. ``since``: when the row was first seen as it is.
    ``wait`` is how long the leases of whoever had the shard before may last, or ours if longer.
    ``away``: when the store stopped answering; ``retry`` how long until it is asked again; ``beaten``: the last try.
    """

    settings: LeaseSettings
    life: str = ""
    row: ShardRow | None = None
    epoch: int = 0
    owning: bool = False
    claimed: int = 0
    asking: bool = False
    above: int = 0
    since: Instant = LONG_AGO
    away: Instant = LONG_AGO
    beaten: Instant = LONG_AGO
    retry: Duration = 0
    wait: Duration = 0

    @property
    def reachable(self) -> bool:
        """Whether the store answered last."""
        return self.away == LONG_AGO

    @property
    def acting(self) -> bool:
        """Whether it may write, prove and order."""
        return self.owning and self.reachable and not self.above

    def ask(self) -> tuple[Effect, ...]:
        """Read the row, unless a call about it is under way."""
        if self.asking:
            return ()
        self.asking = True
        return (ReadShard(),)

    def read(self, event: ShardRead, now: Instant) -> tuple[Standing, tuple[Effect, ...]]:
        """Is the shard ours, another's, or to be had?"""
        self.asking = False
        before, self.row = self.row, event.row
        if event.life != self.life:
            lost = Standing.LOST if self.owning else Standing.SAME
            self.owning, self.life, self.claimed, self.above = False, event.life, 0, 0
            self.since = now
            return lost, self.ask()
        if self.is_mine(event.row):
            return self.stands(event.row)
        lost = Standing.LOST if self.owning else Standing.SAME
        self.owning, self.above = False, 0
        if event.row is None or event.row.owner in ("", self.settings.owner):
            return lost, self.claim(now)
        if before is None or place(before) != place(event.row):
            self.since = now
        return lost, self.claim(now) if now - self.since >= self.settings.take_after else ()

    def is_mine(self, row: ShardRow | None) -> bool:
        """Whether the row is one that we wrote in this life of the store."""
        return row is not None and row.owner == self.settings.owner and row.epoch == self.claimed

    def is_claimed(self, life: str, row: ShardRow | None) -> bool:
        """Whether store and row say that the shard is ours, in our epoch."""
        return self.owning and life == self.life and row is not None and self.is_mine(row) and row.epoch == self.epoch

    def stands(self, row: ShardRow | None) -> tuple[Standing, tuple[Effect, ...]]:
        """The row is ours, as just read or written. Taken, raised above what a host has met, or as before."""
        self.asking = False
        if row is None:
            raise ValueError("a row that stands is there")
        self.row = row
        taken, raised = not self.owning, row.epoch != self.epoch
        self.owning, self.epoch = True, row.epoch
        if self.epoch > self.above:
            self.above = 0
        effects = self.write(self.raised()) if self.above else ()
        return Standing.TAKEN if taken else Standing.RAISED if raised else Standing.SAME, effects

    def raised(self) -> ShardRow:
        """The row that makes the shard ours in an epoch above all that we know of.

        Leases of whoever had it before may last longer than ours, also for whoever takes it from us meanwhile.
        """
        row = self.row or ShardRow(self.settings.shard, self.settings.of)
        epoch = max(row.epoch, self.above, self.epoch) + 1
        return structs.replace(
            row,
            of=self.settings.of,
            owner=self.settings.owner,
            epoch=epoch,
            beat=row.beat + 1,
            lasts=max(row.lasts, self.settings.lease),
        )

    def claim(self, now: Instant) -> tuple[Effect, ...]:
        """Take the shard."""
        self.beaten = now
        self.wait = max(self.settings.lease, self.row.lasts if self.row is not None else 0)
        return self.write(self.raised())

    def write(self, row: ShardRow) -> tuple[Effect, ...]:
        """Write the row over the one last read."""
        self.asking, self.claimed = True, row.epoch
        return (WriteShard(row),)

    def beat(self, now: Instant, *, opened: bool, room: int, waited: bool) -> tuple[Effect, ...]:
        """The next sign of life; where there is none to give, a look at the row. Nothing before its time, but that the
        shard is open: launches wait for it. ``waited``: leases from before it was ours have run out.
        """
        wait = self.settings.beat if self.reachable else self.retry
        opens = opened and self.acting and self.row is not None and self.row.open != self.life
        if self.asking or (now - self.beaten < wait and not opens):
            return ()
        self.beaten = now
        if not self.acting or self.row is None:
            return self.ask()
        open_in = self.life if opened or self.row.open == self.life else ""
        lasts = self.settings.lease if waited else self.row.lasts
        return self.write(structs.replace(self.row, beat=self.row.beat + 1, open=open_in, room=room, lasts=lasts))

    def outdated(self, event: Outdated, number: int, nonce: int) -> tuple[Effect, ...]:
        """A host has met something newer than the token (our epoch, ``number``, ``nonce``) that it was sent."""
        met, ours = (event.epoch, event.number), (self.epoch, number)
        if met < ours or (met == ours and event.nonce == nonce):
            return ()
        self.above = max(self.above, event.epoch)
        return self.ask()

    def went_away(self, now: Instant, *, about_row: bool) -> None:
        """A call failed. It is tried again after waits that stay under half of a lease's least remainder, R."""
        if about_row:
            self.asking = False
        self.beaten = now
        if self.reachable:
            self.away, self.retry = now, self.settings.beat
        else:
            self.retry = min(2 * self.retry, self.settings.renew // 2)

    def returned(self, now: Instant) -> Duration:
        """The store has answered: how long it hadn't (0: it had)."""
        gone = 0 if self.reachable else max(1, now - self.away)
        if gone:
            # Nobody could beat meanwhile, and whoever owns the shard looks again only after a while.
            self.since = max(self.since, now + self.settings.renew // 2)
        self.away = LONG_AGO
        return gone


def place(row: ShardRow) -> tuple[str, int, int]:
    """What changes in a row while its owner lives."""
    return row.owner, row.epoch, row.beat
