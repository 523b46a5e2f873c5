"""Carries out what the schedule says: each upset at its time, and its end where it has one.

What hands and persons do to records, markers and the store is :mod:`fencepost.world.hands`; what is here gives it
a time and a place, and adds what only has meaning in time: pauses, clocks, outages, targets, configurations.
"""

from collections.abc import Callable
from typing import Any

from msgspec import structs

from fencepost.core import promises
from fencepost.core.fence import Foreign
from fencepost.core.instant import MINUTE, SECOND
from fencepost.core.traffic.membership import Listing, Override, OverrideKind
from fencepost.simulator.dns_parts import DnsPart
from fencepost.simulator.parts import Parts
from fencepost.simulator.pools import ZONES, Kept, Pools, Truth, addresses
from fencepost.simulator.schedule import KINDS, Upset
from fencepost.simulator.timed import Timed, indexed
from fencepost.simulator.walk import EPOCH, Process, Walk
from fencepost.world import hands
from fencepost.world.faults import MEANING, Fault
from fencepost.world.model import Move
from fencepost.world.region import Shared

COPIES_EACH = 30 * SECOND
"""A copy of the store is taken so often, to be restored some day."""
COPIES_KEPT = 60
ORDERS = (Fault.ROLLBACK, Fault.WITHDRAW, Fault.RELEASE, Fault.ADOPT)
"""What a person tells the store, and tells it again when it answers."""
REPAIRS_USED = 3
"""So many of the world's contents for repairs are used, in turn."""
CONFIGURED_AFTER = 2 * SECOND
"""So long after a store was lost its configuration is put there again."""
Act = Callable[[Upset], str]
"""Carries out one upset and says in words what it did; "" if there was nothing to do."""
JUMPS = (-30 * MINUTE, -20 * SECOND, -SECOND, SECOND, 20 * SECOND, 30 * MINUTE)


class Upsets:
    """The upsets of one walk, carried out."""

    def __init__(self, walk: Walk, pools: Pools, parts: Parts) -> None:
        self.walk = walk
        self.pools = pools
        self.parts = parts
        self.truth: Truth = pools.truth
        self.count = 0
        self.copies: list[tuple[Shared, Kept]] = []
        self.calm_at = EPOCH
        self.acts: dict[str, Act] = {
            "crash": self.crash,
            "pause": self.pause,
            "clocks": self.jump,
            "local-file-lost": self.lose_file,
            "store-away": self.store_away,
            "store-wiped": self.wipe,
            "store-restored": self.restore,
            "dns-away": self.dns_away,
            "marker-deleted-and-record-altered": self.unmark,
            "foreign-marker": self.foreign,
            "reload": self.reload,
            "endpoint-unlisted": self.unlist,
            "listing-empty": self.silence,
            "checker-cut-off": self.cut_off,
            "probes-lost": self.lose_probes,
            "cut-off-from-store": self.lose_store,
            "cut-off-from-dns": self.lose_dns,
        }
        for act, kinds in (
            (self.mishap, ("answer-lost", "write-lost", "write-late", "delivered-twice", "stopped-before-write")),
            (self.hand, ("marker-deleted", "record-emptied", "marker-and-record-deleted", "record-altered")),
            (self.hand, ("repair-with-an-end",)),
            (self.held, ("repair", "rollback", "withdraw")),
            (self.override, ("drain", "keep", "pause-automation")),
            (self.target, ("target-dies", "target-flaps", "target-lies", "zone-lost")),
        ):
            self.acts |= dict.fromkeys(kinds, act)

    def begin(self, upsets: tuple[Upset, ...], calm_at: int) -> None:
        """Put them all into the heap."""
        self.calm_at = calm_at
        for upset in upsets:
            self.walk.push(EPOCH + upset.at, self.happen, upset)
        if any(upset.kind == "store-restored" for upset in upsets):
            self.walk.push(EPOCH + COPIES_EACH, self.copy)

    def happen(self, upset: Upset) -> None:
        """One upset, now; told whether or not it came to anything."""
        before = self.count
        words = self.acts[upset.kind](upset)
        if words:
            self.walk.watch.saw(f"upset {upset.kind}")
        if not words or self.count == before:  # else the hand has told
            self.walk.watch.tell(self.walk.now, "upset", words or f"{upset.kind}: nothing to do", upset)

    def until(self, upset: Upset) -> int:
        """When it ends: never later than when all is to be calm."""
        return min(self.walk.now + upset.lasts, max(self.calm_at, self.walk.now))

    # processes --------------------------------------------------------------------------------------------------------

    def process(self, upset: Upset) -> Process:
        """Which process it is about."""
        every = self.parts.processes()
        return every[upset.where % len(every)]

    def crash(self, upset: Upset) -> str:
        """A process dies; what it had sent may still be on the way."""
        process = self.process(upset)
        process.stopped_until = 0
        words = f"{process.name} crashes"
        for part in self.parts.living_in(process):
            if isinstance(part, DnsPart) and upset.pick % 2:
                batch = part.sending()
                if batch is not None:
                    words += ", its write still on the way"
                    self.walk.push(self.until(upset), self.walk.arrive, batch)
            part.begin(self.walk.latency.restart())
        return words

    def pause(self, upset: Upset) -> str:
        """A process is stopped."""
        process = self.process(upset)
        process.stopped_until = self.until(upset)
        return f"{process.name} stands still for {upset.lasts // SECOND} s"

    def jump(self, upset: Upset) -> str:
        """A process's clock jumps."""
        process = self.process(upset)
        jump = JUMPS[upset.pick % len(JUMPS)]
        process.skew += jump
        self.walk.ahead = max(self.walk.ahead, process.skew)
        self.walk.push(self.until(upset), self.set_right, (process, jump))
        return f"the clock of {process.name} jumps by {jump // SECOND} s"

    def set_right(self, what: tuple[Process, int]) -> None:
        """It is set right again."""
        process, jump = what
        process.skew -= jump

    def lose_file(self, upset: Upset) -> str:
        """An enactor's local file is gone, and the process with it: it is read at its start."""
        enactors = [part for part in self.parts.dns if part.is_enactor]
        part = enactors[upset.where % len(enactors)]
        part.slot = part.slot._replace(file=(None,) * len(part.slot.file))
        part.begin(self.walk.latency.restart())
        return f"the local file of {part.process.name} is lost, and it starts anew"

    def mishap(self, upset: Upset) -> str:
        """What becomes of a part's next write."""
        part = self.parts.dns[upset.where % len(self.parts.dns)]
        part.mishaps.append((upset.kind, self.until(upset) - self.walk.now))
        return f"of {part.process.name}'s next write: {KINDS[upset.kind].meaning}"

    # store and provider -----------------------------------------------------------------------------------------------

    def store_away(self, upset: Upset) -> str:
        """The store doesn't answer."""
        self.walk.store_away_until = max(self.walk.store_away_until, self.until(upset))
        return f"the store is away for {upset.lasts // SECOND} s"

    def dns_away(self, upset: Upset) -> str:
        """The provider doesn't answer."""
        self.walk.dns_away_until = max(self.walk.dns_away_until, self.until(upset))
        return f"DNS is away for {upset.lasts // SECOND} s"

    def lose_store(self, upset: Upset) -> str:
        """One process can't reach the store."""
        process = self.process(upset)
        process.no_store_until = self.until(upset)
        return f"{process.name} can't reach the store for {upset.lasts // SECOND} s"

    def lose_dns(self, upset: Upset) -> str:
        """One process can't reach the provider."""
        process = self.process(upset)
        process.no_dns_until = self.until(upset)
        return f"{process.name} can't reach DNS for {upset.lasts // SECOND} s"

    def wipe(self, _: Upset) -> str:
        """The store is lost."""
        after = hands.wiped(self.walk.as_of(), 0)
        if after is None:
            return ""
        self.walk.shared = after.with_tables(  # type: ignore[assignment]
            structs.replace(indexed(after.tables), wanted=(), orders=())
        )
        self.copies.clear()
        self.operated("wiped", after.tables.head)
        self.pools.replace(self.pools.empty)
        self.walk.push(self.walk.now + CONFIGURED_AFTER, self.pools.load)
        return MEANING[Fault.STORE_WIPED]

    def copy(self, _: object) -> None:
        """A copy of the store is taken."""
        self.copies = [*self.copies, (self.walk.shared, self.pools.kept)][-COPIES_KEPT:]
        self.walk.push(self.walk.now + COPIES_EACH, self.copy)

    def restore(self, upset: Upset) -> str:
        """The store is set back; promises remember no more than what is left."""
        back = max(1, upset.lasts // COPIES_EACH)
        if len(self.copies) < back:
            return ""
        then, kept = self.copies[-back]
        shared = self.walk.as_of()
        tables = then.tables
        after = structs.replace(shared, stores=(tables,), life=shared.life + 1)
        memory = tuple(
            promises.destroy(memory, live, hands.newest_row(after, at))
            for at, (memory, live) in enumerate(zip(after.memory, after.domain, strict=True))
        )
        self.walk.shared = structs.replace(after, memory=memory)
        self.operated("restored", tables)
        self.pools.replace(kept)
        self.walk.push(self.walk.now + CONFIGURED_AFTER, self.pools.load)
        return f"the store is set back by {back * COPIES_EACH // SECOND} s"

    def operated(self, what: str, argument: object) -> None:
        """Tell whoever drives real ones."""
        if self.walk.operated is not None:
            self.walk.operated((what, argument, None))

    # hands on records -------------------------------------------------------------------------------------------------

    def hand(self, upset: Upset, kind: str = "") -> str:
        """One of the world's hands, now, at one endpoint."""
        fault = Fault(kind or upset.kind)
        if fault in ORDERS and self.walk.now < self.walk.store_away_until:
            self.walk.push(self.walk.store_away_until + SECOND, self.follow, (upset, fault.value))
            return ""
        at = upset.where % len(self.walk.shared.domain)
        self.count += 1
        number = self.count
        if fault in (Fault.REPAIR, Fault.BRIEF_REPAIR):
            number = number % REPAIRS_USED + 1
        shared: Timed = structs.replace(self.walk.as_of(), budget=((fault, number),))
        after = hands.HANDS[fault](shared, at)
        if after is None:
            return ""
        name = self.walk.shared.domain[at].name
        after = structs.replace(after, budget=())
        if after.domain is not shared.domain:
            self.operated("hand", after.domain[at])
        elif after.tables.orders is not shared.tables.orders:
            self.operated("order", after.tables.orders[-1])
        self.walk.took("hand", Move(f"{name}: {MEANING[fault]}", None, after, event=fault.value))
        return f"{name}: {fault.value}"

    def later(self, upset: Upset, kind: str) -> None:
        """What follows, at the upset's end."""
        self.walk.push(self.until(upset), self.follow, (upset, kind))

    def follow(self, what: tuple[Upset, str]) -> None:
        """It is time for what follows."""
        self.hand(*what)

    def unmark(self, upset: Upset) -> str:
        """Somebody's own addresses; later a person says that we may take over."""
        self.later(upset, "adopt")
        return self.hand(upset)

    def held(self, upset: Upset) -> str:
        """A person's hold, released later."""
        self.later(upset, "release")
        return self.hand(upset)

    def foreign(self, upset: Upset) -> str:
        """Another's marker, gone later."""
        self.walk.push(self.until(upset), self.unforeign, upset)
        return self.hand(upset)

    def unforeign(self, upset: Upset) -> None:
        """The other region takes its marker away."""
        at = upset.where % len(self.walk.shared.domain)
        if isinstance(self.walk.shared.domain[at].marker, Foreign):
            self.hand(upset, "marker-deleted")

    # targets ----------------------------------------------------------------------------------------------------------

    def targets(self, upset: Upset) -> tuple[int, Listing]:
        """A pool by number, and its list."""
        pool = upset.pick % len(self.pools.owner.listings)
        return pool, self.pools.owner.listings[pool]

    def target(self, upset: Upset) -> str:
        """Something about a target, or all targets of a zone."""
        until, truth = self.until(upset), self.truth
        truth.trouble(until + 6 * MINUTE)
        if upset.kind == "zone-lost":
            zone = ZONES[upset.where % len(ZONES)]
            for listing in self.pools.owner.listings:
                for each in listing.targets:
                    if each.zone == zone:
                        truth.dead[each.key] = max(until, truth.dead.get(each.key, 0))
            return f"all targets of zone {zone} are dead for {upset.lasts // SECOND} s"
        _, listing = self.targets(upset)
        key = listing.targets[upset.where % len(listing.targets)].key
        if upset.kind == "target-dies":
            truth.dead[key] = max(until, truth.dead.get(key, 0))
            return f"{key} is dead for {upset.lasts // SECOND} s"
        if upset.kind == "target-flaps":
            truth.flapping[key] = (until, (5 + upset.pick % 60) * SECOND)
            return f"{key} is well and sick in turn, {5 + upset.pick % 60} s each"
        truth.lying[key] = until
        return f"{key} claims too much capacity"

    def cut_off(self, upset: Upset) -> str:
        """A checker can't reach targets."""
        zone, until = ZONES[upset.where % len(ZONES)], self.until(upset)
        canary_too = bool(upset.pick % 4)
        self.truth.cut[zone] = (until, canary_too)
        self.truth.trouble(until + 6 * MINUTE)
        return f"checker {zone} reaches no target{', nor its canary' if canary_too else ', but its canary'}"

    def lose_probes(self, upset: Upset) -> str:
        """A third of all probes is lost."""
        self.truth.loss_until = self.until(upset)
        self.truth.trouble(self.truth.loss_until + 6 * MINUTE)
        return f"a third of all probes is lost for {upset.lasts // SECOND} s"

    # persons ----------------------------------------------------------------------------------------------------------

    def override(self, upset: Upset) -> str:
        """A person's word about a target, a zone or a pool."""
        if self.walk.now < self.walk.store_away_until:
            return ""
        pool, listing = self.targets(upset)
        target = listing.targets[upset.where % len(listing.targets)]
        if upset.kind == "pause-automation":
            scope = {"zone": target.zone} if upset.where % 2 else {}
            word = Override(OverrideKind.PAUSE, **scope, until=0)
        else:
            word = Override(OverrideKind(upset.kind), target=target.key)
        self.pools.override(pool, word)
        self.walk.push(self.until(upset), self.resume, (pool, word))
        return f"a person: {word.kind} {word.target or word.zone or f'pool {pool}'} for {upset.lasts // SECOND} s"

    def resume(self, what: tuple[int, Override]) -> None:
        """The word is taken back, when the store can hear it."""
        if self.walk.now < self.walk.store_away_until:
            self.walk.push(self.walk.store_away_until + SECOND, self.resume, what)
            return
        self.pools.override(*what, ends=True)

    def reload(self, upset: Upset) -> str:
        """Another TTL, a target more, or one less."""
        owner, way = self.pools.owner, upset.where % 3
        pool, listing = self.targets(upset)
        if way == 0:
            ttl = 20 + upset.where % 40
            changed = tuple(structs.replace(e, ttl_s=ttl) if e.pool == pool else e for e in owner.endpoints)
            self.load(structs.replace(owner, endpoints=changed))
            return f"a configuration with TTL {ttl} s for pool {pool} is loaded"
        count = len(listing.targets)
        every = addresses(pool, 15)
        known = {target.key for target in listing.targets}
        if way == 1 or count < 3:
            added = next((target for target in every if target.key not in known), None)
            targets = (*listing.targets, added) if added is not None else listing.targets
            words = f"{added.key} is added" if added is not None else "nothing is added"
        else:
            gone = listing.targets[upset.where % count]
            targets = tuple(target for target in listing.targets if target is not gone)
            words = f"{gone.key} is taken off"
        listings = list(owner.listings)
        listings[pool] = Listing(targets, listing.revision + 1)
        self.load(structs.replace(owner, listings=tuple(listings)))
        return f"a configuration is loaded: {words}"

    def load(self, configuration: Any) -> None:
        """The owner's file is another, and is loaded."""
        self.pools.owner = configuration
        self.pools.load()

    def unlist(self, upset: Upset) -> str:
        """One endpoint is gone from the configuration, for a while."""
        at = upset.where % len(self.pools.owner.endpoints)
        self.listed(at, listed=False)
        self.walk.push(self.until(upset), lambda _: self.listed(at, listed=True))
        return f"a configuration without {self.pools.owner.endpoints[at].name} is loaded"

    def listed(self, at: int, *, listed: bool) -> None:
        """An endpoint stands in the configuration, or not."""
        owner = self.pools.owner
        endpoints = list(owner.endpoints)
        endpoints[at] = structs.replace(endpoints[at], listed=listed)
        self.load(structs.replace(owner, endpoints=tuple(endpoints)))

    def silence(self, upset: Upset) -> str:
        """The source of targets says nothing."""
        pool, _ = self.targets(upset)
        self.pools.silent_until[pool] = self.until(upset)
        return f"the source of pool {pool} lists nothing for {upset.lasts // SECOND} s"
