"""Reads one table by its keys: what is there, what holds by default, what is wrong."""

from collections.abc import Iterable
from typing import Any

from fencepost.settings import keys as known
from fencepost.settings.keys import Key
from fencepost.settings.lines import Path
from fencepost.settings.mistakes import Notes, advice, clean, nearest, shown


class Fields(dict[str, Any]):
    """A table's values by key, defaults in. `given` are the keys that stand in the file and could be read."""

    def __init__(self) -> None:
        """Start with none."""
        super().__init__()
        self.given: set[str] = set()
        self.bad: set[str] = set()


def heading(path: Path) -> str:
    """Write a table's path as its heading: ``[pool.web.probe]``; an element of an array of tables is
    ``[[endpoint]]``."""
    names = ".".join(clean(part) for part in path if isinstance(part, str))
    return f"[[{names}]]" if path[0] == "endpoint" else f"[{names}]"


def as_table(notes: Notes, value: Any, path: Path) -> dict[str, Any]:
    """Take a value that must be a table; note it and give an empty one if it isn't."""
    if isinstance(value, dict):
        return value
    notes.wrong(
        path, f"{clean(str(path[-1]))} must be a table; write {heading(path)} on a line of its own and its keys below"
    )
    return {}


def read_table(notes: Notes, raw: dict[str, Any], path: Path, keys: Iterable[Key], also: Iterable[str] = ()) -> Fields:
    """Read a table. `also` names keys that someone else reads."""
    fields = Fields()
    by_name = {key.name: key for key in keys}
    also = tuple(also)
    for name in raw:
        if name not in by_name and name not in also:
            notes.wrong((*path, name), unknown_key(name, path, dict.fromkeys((*by_name, *also))))
            # What was meant isn't known, so nothing is judged by the default that stands in its place.
            fields.bad.update(each for each in (nearest(name, by_name),) if each and each not in raw)
    for name, key in by_name.items():
        fields[name] = key.default if key.default is None or key.default == () else _default(key)
        if name in raw and name not in also:
            _read_value(notes, fields, key, raw[name], (*path, name))
        elif key.example and name not in raw and name not in fields.bad:
            fields.bad.add(name)
            notes.wrong(path, f"{heading(path)} has no {name}; write {key.example}")
    return fields


def _default(key: Key) -> Any:
    return key.default if isinstance(key.default, (bool, int)) else key.read(key.default)


def _read_value(notes: Notes, fields: Fields, key: Key, value: Any, path: Path) -> None:
    try:
        fields[key.name] = key.read(value)
        fields.given.add(key.name)
    except ValueError as error:
        fields.bad.add(key.name)
        if key.secret:
            text = f"{key.name} {error}".replace("{ file", f"{key.name} = {{ file")
        elif isinstance(value, (list, dict)):
            text = f"{key.name}: {error}"
        else:
            text = f"{key.name} {shown(value)} {error}"
        notes.wrong(path, text)


def unknown_key(name: str, path: Path, here: Iterable[str]) -> str:
    """Say that a key is unknown, and which was meant: the nearest one here, or the table it belongs to."""
    here = tuple(here)
    text = f'unknown key "{clean(name)}" in {heading(path)}; '
    near = nearest(name, here)
    elsewhere = known.home(name)
    if not near and elsewhere:
        return text + f"it belongs in {elsewhere}"
    return text + advice(name, here)
