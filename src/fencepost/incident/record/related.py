"""Which incidents are related: by what they name themselves, by a kind of cause, by a component.

A component in common says only that: a reader judges what it means. Causes count whether they were the root or made it
worse, and which of the two is said.
"""

from collections.abc import Iterable

from msgspec import structs

from fencepost.incident.record.reading import Found
from fencepost.incident.record.record import Category, Record, Related


def related(record: Record, others: Iterable[Found]) -> tuple[Related, ...]:
    """All that a record names and all that are found, those with more in common first within each reason."""
    named = {each.id for each in record.related}
    causes, components = [], []
    for other in (each.record for each in others):
        if other.id == record.id:
            continue
        if any(each.id == record.id for each in other.related) and other.id not in named:
            words = next(each.words for each in other.related if each.id == record.id)
            causes.append((-99, Related(other.id, "named", f"it names this one: {words}")))
        same = _same_causes(record, other)
        if same:
            causes.append((-len(same), Related(other.id, "cause", "; ".join(same))))
        shared = sorted(set(record.components) & set(other.components))
        if shared:
            components.append((-len(shared), Related(other.id, "component", ", ".join(shared))))
    found = sorted(causes, key=_order) + sorted(components, key=_order)
    return (*record.related, *(each for _, each in found))


def _order(found: tuple[int, Related]) -> tuple[int, str]:
    return (found[0], found[1].id)


def _same_causes(record: Record, other: Record) -> list[str]:
    mine, theirs = causes(record), causes(other)
    said = []
    for category, part in mine.items():
        if category in theirs:
            there = theirs[category]
            how = f"{part} of both" if part == there else f"{part} here, {there} there"
            said.append(f"{category.value} ({how})")
    return said


def causes(record: Record) -> dict[Category, str]:
    """Each kind of cause, and what part it had: "root cause" or "contributing"."""
    found = {record.root_cause.category: "root cause"} if record.root_cause else {}
    for each in record.contributing:
        if each.category is not None:
            found.setdefault(each.category, "contributing")
    return found


def completed(record: Record, others: Iterable[Found]) -> Record:
    """The record with all that is related to it."""
    return structs.replace(record, related=related(record, others))
