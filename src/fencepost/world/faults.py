"""The adversary's moves, by name. Each is something that a person, a network or a machine has done to such a system."""

from enum import Enum


class Fault(Enum):
    """What may happen to a region besides its own steps; a shape says which, and how often."""

    MARKER_DELETED = "marker-deleted"
    EMPTIED = "record-emptied"
    BOTH = "marker-and-record-deleted"
    ALTERED = "record-altered"
    UNMARKED = "marker-deleted-and-record-altered"
    FOREIGN = "foreign-marker"
    STORE_WIPED = "store-wiped"
    STORE_AWAY = "store-away"
    UNKNOWN = "outcome-unknown"
    CRASH = "crash"
    DUPLICATE = "duplicate-delivery"
    REPAIR = "repair"
    BRIEF_REPAIR = "repair-with-an-end"
    TIME = "time-passes"
    ROLLBACK = "rollback"
    WITHDRAW = "withdraw"
    RELEASE = "release"
    ADOPT = "adopt"
    INPUT = "input-change"
    STRANGER = "unmarked-set"
    TORN = "torn-reads"
    TORN_STORE = "torn-store-reads"
    DRAIN = "drain"
    KEEP = "keep"
    RESUME = "resume"
    FILE_LOST = "local-file-lost"
    FILE_OLD = "older-local-file"
    SLOW_REPAIR = "repair-by-a-slow-clock"
    FAST_REPAIR = "repair-by-a-fast-clock"
    CLAIM = "adopt-contested"


MEANING: dict[Fault, str] = {
    Fault.MARKER_DELETED: "somebody deletes the marker and leaves the addresses",
    Fault.EMPTIED: "somebody deletes the addresses and leaves the marker",
    Fault.BOTH: "somebody deletes marker and addresses",
    Fault.ALTERED: "somebody changes the addresses and leaves the marker",
    Fault.UNMARKED: "somebody replaces marker and addresses by addresses of his own",
    Fault.FOREIGN: "another region's marker comes to stand in place of ours",
    Fault.STORE_WIPED: "the store is lost, and a new one has only what the configuration asks",
    Fault.STORE_AWAY: "the store doesn't answer one call",
    Fault.UNKNOWN: "the answer to one write is lost, whether or not it applied, now or later",
    Fault.CRASH: "a part dies and is started anew; a write that it had sent may still arrive",
    Fault.DUPLICATE: "a transaction is delivered a second time, any time later",
    Fault.REPAIR: "a person sends a break-glass repair to the provider, which arrives any time later",
    Fault.BRIEF_REPAIR: "a person sends a repair that ends by itself",
    Fault.TIME: "so much time passes that a hold with an end is over",
    Fault.ROLLBACK: "a person orders the oldest kept plan's content back",
    Fault.WITHDRAW: "the owner takes an endpoint away",
    Fault.RELEASE: "a person ends the hold that stands in the marker",
    Fault.ADOPT: "a person says that the unmarked addresses he sees may be taken over",
    Fault.INPUT: "the inputs ask for other addresses",
    Fault.STRANGER: "somebody puts addresses of his own where nothing stands",
    Fault.TORN: "reads of DNS aren't one moment: each record set is read at its own, by whoever reads, always",
    Fault.TORN_STORE: "reads of the store aren't one moment: head, rows, inputs and orders each at their own, always",
    Fault.DRAIN: "a person drains a target, so that the inputs ask for fewer addresses; the word is in the store only",
    Fault.KEEP: "a person keeps what is asked now, whatever the inputs come to ask; the word is in the store only",
    Fault.RESUME: "a person takes back a drain or keep",
    Fault.FILE_LOST: "an enactor dies, and its local file with it; a write that it had sent may still arrive",
    Fault.FILE_OLD: "an enactor dies, and the first copy ever made of its local file is put back",
    Fault.SLOW_REPAIR: "a person sends a repair from a machine whose clock is years behind",
    Fault.FAST_REPAIR: "a person sends a repair from a machine whose clock is ahead",
    Fault.CLAIM: "a person says that a store which stopped, being replaced by another, is to go on",
}
"""Each fault in words, for help texts and documentation."""

NINE: tuple[tuple[Fault, ...], ...] = (
    (Fault.MARKER_DELETED,),
    (Fault.EMPTIED,),
    (Fault.BOTH,),
    (Fault.STORE_WIPED,),
    (Fault.REPAIR, Fault.RELEASE),
    (Fault.ROLLBACK, Fault.RELEASE),
    (Fault.FOREIGN,),
    (Fault.CRASH,),
    (Fault.DUPLICATE,),
)
"""The nine moves that the protocol was checked against, each alone; a repair or rollback comes with its release."""

FURTHER: tuple[tuple[Fault, ...], ...] = (
    (Fault.ALTERED,),
    (Fault.UNMARKED, Fault.ADOPT),
    (Fault.STRANGER, Fault.ADOPT),
    (Fault.STORE_AWAY,),
    (Fault.UNKNOWN,),
    (Fault.BRIEF_REPAIR, Fault.TIME),
    (Fault.REPAIR, Fault.REPAIR, Fault.RELEASE),
    (Fault.TORN,),
    (Fault.TORN_STORE,),
    (Fault.DRAIN, Fault.RESUME),
    (Fault.KEEP, Fault.RESUME),
    (Fault.FILE_LOST, Fault.EMPTIED),
    (Fault.FILE_OLD, Fault.EMPTIED),
    (Fault.SLOW_REPAIR, Fault.RELEASE),
    (Fault.FAST_REPAIR, Fault.RELEASE),
)
"""Later ones: hand edits that keep or take the marker, a stranger's set, a silent store, lost answers, a hold that ends
by time, a second repair; reads that aren't one moment, words about targets, local files lost or set back, wrong clocks.
"""
