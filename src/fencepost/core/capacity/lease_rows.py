"""What a lease manager writes into a host's row: pure, so that explorer and port write the very same.

Each raises nothing and returns None where the row isn't in the state that the write is about: the decider had looked at
an older one, and looks again.
"""

from msgspec import structs

from fencepost.core.capacity.lease_calls import Op
from fencepost.core.capacity.messages import InstanceSet
from fencepost.core.capacity.rows import HostRow
from fencepost.core.instant import Duration


def granted(row: HostRow, life: str, nonce: int, incarnation: int, boot: int) -> HostRow:
    """The next grant. In another life of the store than the last, or for a new memory, the host must report first."""
    known = row.life == life and row.incarnation == incarnation and row.reported
    return structs.replace(
        row,
        number=row.number + 1,
        nonce=nonce,
        lease="held",
        life=life,
        incarnation=incarnation,
        boot=boot,
        left=0,
        reported=known,
        steady=steady(row, boot),
    )


def steady(row: HostRow, boot: int) -> tuple[int, int]:
    """From which version of the set on the row has had this boot."""
    return row.steady if row.boot == boot else (boot, row.set.version)


def lapsed(row: HostRow, life: str) -> HostRow | None:
    """The lease has run out; whatever was placed there is to be placed elsewhere."""
    if row.lease == "lapsed" and row.life == life:
        return None
    return structs.replace(row, lease="lapsed", life=life, left=0, reported=row.reported and row.life == life)


def marked(row: HostRow, life: str, left: Duration) -> HostRow | None:
    """A suspect, with so much left: whoever takes over need not wait longer."""
    return structs.replace(row, left=max(1, left)) if row.held(life) else None


def cleared(row: HostRow, life: str) -> HostRow | None:
    """No suspect any more: from now on orders may be sent again.

    Written also where no mark stands: the row's new revision keeps out a mark or a lapse that was given up before, and
    may still be under way.
    """
    return structs.replace(row, left=0) if row.held(life) else None


def booted(row: HostRow, life: str, boot: int) -> HostRow | None:
    """The agent has started anew: acknowledgements of the boot before are worth nothing."""
    held = row.held(life) and row.boot != boot
    return structs.replace(row, boot=boot, steady=steady(row, boot)) if held else None


def adopted(row: HostRow, life: str, theirs: InstanceSet) -> HostRow | None:
    """The host has reported in this life. What it holds wins over a row that knows less; versions go on above both.

    A row whose version is higher than the host's in the same life was placed since, and stands: the host will be told.
    """
    if not row.held(life):
        return None
    if row.reported and row.set.version >= theirs.version:
        return None
    if row.reported or theirs.version > row.set.version:
        return structs.replace(row, set=theirs, reported=True)
    if theirs.instances == row.set.instances:
        return structs.replace(row, reported=True)
    return structs.replace(row, set=InstanceSet(row.set.version + 1, theirs.instances), reported=True)


def composed(
    op: Op,
    row: HostRow,
    life: str,
    *,
    nonce: int = 0,
    left: Duration = 0,
    incarnation: int = 0,
    boot: int = 0,
    theirs: InstanceSet | None = None,
) -> HostRow | None:
    """What a write makes of the row as its writer knows it, of what each kind needs; None for nothing to do.

    Raises ``TypeError`` for an operation that writes nothing.
    """
    match op:
        case Op.GRANT:
            return granted(row, life, nonce, incarnation, boot)
        case Op.LAPSE:
            return lapsed(row, life)
        case Op.MARK:
            return marked(row, life, left)
        case Op.CLEAR:
            return cleared(row, life)
        case Op.BOOT:
            return booted(row, life, boot)
        case Op.ADOPT:
            return adopted(row, life, theirs) if theirs is not None else None
    raise TypeError(f"nothing is written for {op.name}")
