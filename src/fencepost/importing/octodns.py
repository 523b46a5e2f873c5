"""octoDNS's zone files: YAML, one file a zone, or a folder with a trailing dot and a file a record (tried with 1.22).

Plain A and AAAA records can be taken over. ``dynamic`` and ``geo`` records answer by rules that one set of addresses
can't say, and are left out by name; so is what ``octodns: {ignored: true}`` keeps octoDNS itself from touching.

The file is composed into nodes and walked, not loaded into objects: each value keeps its line for an error, and a value
stays the text that stands there (YAML would make a number of some). ``!include`` and other tags are refused with their
line, since what they bring in would silently be missing.
"""

from collections.abc import Iterator
from pathlib import Path

import yaml

from fencepost.importing.endless import refuse_endless
from fencepost.importing.records import ADDRESSES, POINTERS, Book
from fencepost.ports import Misconfigured

TTL_DEFAULT_S = 3600
"""octoDNS's YamlProvider, default_ttl."""
RULES = {"dynamic": "a dynamic record", "geo": "a geo record", "weighted": "a weighted record"}
DEPTH_MOST = 16
SIZE_MOST = 32 * 1024 * 1024
"""Bytes of a file: half a million records, for which two gigabytes of memory are taken."""
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(book: Book, path: Path, domain: str = "") -> list[str]:
    """Read a zone file, or a folder of them, into ``book``; what was passed over, in words.

    Raises ``Misconfigured`` with file and line, ``OSError``.
    """
    path.stat()  # one that isn't there is said so, whatever its name says
    if not path.is_dir():
        zone = domain or zone_of(path)
        if not zone:
            hint = "octoDNS calls it example.com.yaml; or say which:  --domain example.com"
            raise Misconfigured("its name doesn't say which domain it is", where=str(path), hint=hint)
        read_file(book, path, zone)
        return []
    if path.name.endswith("."):
        return read_split(book, path, path.name)
    said = []
    for each in sorted(path.iterdir()):
        if each.is_dir() and each.name.endswith("."):
            said += read_split(book, each, each.name)
        elif each.suffix == ".yaml" and zone_of(each):
            read_file(book, each, zone_of(each))
        elif each.is_file():
            said.append(f"{each} isn't a zone's file by its name; passed over")
    return said


def zone_of(path: Path) -> str:
    """The zone that a file's name says, "" for none: a zone has a dot."""
    stem = path.name.removesuffix(".yaml").removesuffix(".yml")
    return stem if "." in stem and not stem.startswith((".", "$")) else ""


def read_split(book: Book, folder: Path, zone: str) -> list[str]:
    """A zone as a folder: a file for each record, and ``$zone.yaml`` for the rest."""
    said = []
    for each in sorted(folder.iterdir()):
        if each.suffix == ".yaml":
            read_file(book, each, zone)
        else:
            said.append(f"{each} isn't YAML by its name; passed over")
    return said


def read_file(book: Book, path: Path, zone: str) -> None:
    """One file of a zone."""
    try:
        book.domain(zone)
    except ValueError as error:
        raise Misconfigured(f"the domain {zone!a} {error}", where=str(path)) from None
    refuse_endless(path, SIZE_MOST)
    try:
        top = yaml.compose(path.read_text(encoding="utf-8"), Loader=LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{path}:{mark.line + 1}" if mark else str(path)
        raise Misconfigured(f"is no YAML: {error.problem or error.context}", where=at) from None
    except yaml.YAMLError as error:
        raise Misconfigured(f"is no YAML: {str(error).splitlines()[0]}", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise Misconfigured(f"is not UTF-8 (byte {error.start})", where=str(path)) from None
    except RecursionError:
        raise Misconfigured("is nested too deep", where=str(path)) from None
    if top is None:
        return
    for name, node in items(top, str(path)):
        for each in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            take(book, f"{name}.{zone}" if name else zone, each, str(path))


def take(book: Book, owner: str, node: yaml.Node, path: str) -> None:
    """One record."""
    fields = dict(items(node, path))
    kind = scalar(fields.get("type"), path, node, "type").upper()
    own = dict(items(fields["octodns"], path)) if "octodns" in fields else {}
    if "ignored" in own and scalar(own["ignored"], path, node, "ignored").lower() == "true":
        if kind in ADDRESSES:
            book.leave(owner, "octoDNS is told to ignore it")
        return
    rule = next((meaning for key, meaning in RULES.items() if key in fields), None)
    if rule is not None:
        book.leave(owner, f"{rule} of octoDNS, which answers by its own rules")
        return
    if kind == "TXT":
        book.marker(owner)
        return
    values = list(values_of(fields, kind, path, node)) if kind in (*ADDRESSES, *POINTERS) else []
    book.add(owner, kind, ttl_of(fields, path, node), values)


def values_of(fields: dict[str, yaml.Node], kind: str, path: str, node: yaml.Node) -> Iterator[str]:
    """The values of a record, as text: an address, or where an NS or MX points."""
    found = fields.get("values", fields.get("value"))
    if found is None:
        raise wrong("a record has neither value nor values", path, node)
    for each in found.value if isinstance(found, yaml.SequenceNode) else [found]:
        if isinstance(each, yaml.MappingNode) and kind == "MX":
            parts = dict(items(each, path))
            yield scalar(parts.get("exchange", parts.get("value")), path, each, "exchange")
        else:
            yield scalar(each, path, node, "value")


def ttl_of(fields: dict[str, yaml.Node], path: str, node: yaml.Node) -> int:
    """Seconds."""
    if "ttl" not in fields:
        return TTL_DEFAULT_S
    text = scalar(fields["ttl"], path, node, "ttl")
    if not text.isascii() or not text.isdecimal() or len(text) > 10:
        raise wrong(f"ttl {text!a} is no number of seconds", path, fields["ttl"])
    return int(text)


def items(
    node: yaml.Node, path: str, above: tuple[yaml.Node, ...] = (), met: set[int] | None = None
) -> Iterator[tuple[str, yaml.Node]]:
    """A mapping's keys and values, merges (``<<``) followed. Raises ``Misconfigured``.

    ``met`` names the mappings merged so far. One that is merged again brings nothing new, since the first to bring a
    key wins; followed again each time, a few lines of aliases to aliases would never end.
    """
    met = set() if met is None else met
    met.add(id(node))
    if not isinstance(node, yaml.MappingNode) or not plain_tag(node):
        raise wrong("a mapping (key: value) should stand here", path, node)
    if node in above or len(above) > DEPTH_MOST:
        raise wrong("merges go in circles" if node in above else "merges go too deep", path, node)
    own: dict[str, yaml.Node] = {}
    merged: list[yaml.Node] = []
    for key, value in node.value:
        name = scalar(key, path, node, "key")
        if name == "<<":
            merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
        elif name in own:
            raise wrong(f"{name!a} stands there twice", path, key)
        else:
            own[name] = value
    for each in merged:
        if id(each) in met and each is not node and each not in above:
            continue
        for name, value in items(each, path, (*above, node), met):
            own.setdefault(name, value)
    yield from own.items()


def scalar(node: yaml.Node | None, path: str, near: yaml.Node, what: str) -> str:
    """A value's text. Raises ``Misconfigured`` where there is none."""
    if node is None:
        raise wrong(f"a record has no {what}", path, near)
    if not isinstance(node, yaml.ScalarNode) or not plain_tag(node):
        said = f"{node.tag} isn't followed" if not plain_tag(node) else f"{what} should be one value"
        raise wrong(said, path, node)
    return str(node.value)


def plain_tag(node: yaml.Node) -> bool:
    """Whether a node is of YAML's own kinds, and nothing that a program would have to bring in."""
    return str(node.tag).startswith("tag:yaml.org,2002:")


def wrong(what: str, path: str, node: yaml.Node) -> Misconfigured:
    """What is wrong, and on which line."""
    return Misconfigured(what, where=f"{path}:{node.start_mark.line + 1}", hint="as octoDNS's YamlProvider writes it")
