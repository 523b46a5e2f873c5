"""An explanation as a value, and as lines at 100 columns."""

import re
from typing import Literal

import msgspec

from fencepost.core.traffic.membership import State

HELD, ASIDE = "held", "aside"
"""Answered because a person's hold says so; a target that isn't answered as long as that hold stands."""

ORDER = (HELD, State.IN, State.OUT, State.KEPT, State.PENDING, State.DRAINED, ASIDE)


class Detail(msgspec.Struct, frozen=True):
    """A labelled line: votes, limit, dns, try, moved, said."""

    label: str
    text: str


class Item(msgspec.Struct, frozen=True):
    """One address: where it stands, why in a line, and what is behind that. ``zone`` is "" where no pool has it."""

    address: str
    zone: str
    state: str
    text: str
    details: tuple[Detail, ...] = ()


class Explanation(msgspec.Struct, frozen=True):
    """What was asked about, in a line; then its addresses, in the order of :data:`ORDER`.

    Kind "address" is one that is answered for an endpoint and that no pool has.
    """

    what: str
    kind: Literal["endpoint", "target", "zone", "pool", "address"]
    headline: str
    items: tuple[Item, ...]
    details: tuple[Detail, ...] = ()


def render(found: Explanation) -> list[str]:
    """The explanation in lines: targets that are in side by side, the first of each other state with its reasons."""
    kind = f"{found.kind} " if found.kind in ("zone", "pool") else ""
    lines = [f"{kind}{found.what}   {found.headline}"]
    full = found.kind == "target"
    told: set[Detail] = set()
    for state in ORDER:
        items = [each for each in found.items if each.state == state]
        if state is State.IN and not full:
            lines += side_by_side(items)
            continue
        for at, each in enumerate(items):
            label = f" {state:<6}".ljust(len(state) + 2) if at == 0 else " " * 7
            if at == 0 or full:
                lines.append(f"{label}{placed(each)}  {each.text}")
                news = [detail for detail in each.details if detail.label != "votes" or detail not in told]
                lines += [f"         {detail.label:<7} {detail.text}" for detail in news]
                told.update(news)
            else:
                lines.append(f"{label}{placed(each)}  {each.text}{plan_of(each)}")
    lines += [f" {d.label:<6}{d.text}" for d in found.details]
    return lines


def placed(each: Item) -> str:
    """An address and its zone, if a pool has it."""
    return f"{each.address} ({each.zone})" if each.zone else each.address


def plan_of(each: Item) -> str:
    """By which plan it left, for a line that gives no more reasons."""
    dns = next((detail.text for detail in each.details if detail.label == "dns"), "")
    found = re.match(r"plan \d+(?: \(epoch \d+\))?, by [\w-]+(?: [\w-]+)?(?= )", dns)
    return f"; {found[0]}" if found else ""


def side_by_side(items: list[Item]) -> list[str]:
    """Targets in service, three to a line, those with the same votes together."""
    lines: list[str] = []
    wide = max((len(placed(each)) for each in items), default=0) + 2
    for text in dict.fromkeys(each.text for each in items):
        alike = [placed(each) for each in items if each.text == text]
        for at in range(0, len(alike), 3):
            cells = "".join(f"{cell:<{wide}}" for cell in alike[at : at + 3])
            label = " in    " if not lines else " " * 7
            lines.append(f"{label}{cells}".ljust(57) + text if at == 0 else f"{label}{cells}".rstrip())
    return lines
