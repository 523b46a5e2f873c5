"""Domain names as Route 53 keeps and returns them.

Lower case, one trailing dot, and every character outside ``a-z 0-9 - _`` as a backslash and three octal digits, so that
``*.x`` comes back as ``\\052.x.`` (Developer Guide, "DNS domain name format"; external-dns #264). A name may be given
either way. The order of a listing is that of the labels reversed, as text with its dots: ``com.example.www.`` (API
reference, ListResourceRecordSets, "sort order").

Refusal texts seen in reports: an empty label (terraform #18482), an empty name (external-dns #647). The others are
ours, after the same pattern.
"""

import re
import string

LABEL_CHARACTERS_MOST = 63
"""RFC 1035 section 2.3.4."""
NAME_CHARACTERS_MOST = 255
"""Developer Guide, "DNS domain name format": 255 characters, dots included."""
PLAIN = frozenset(string.ascii_lowercase + string.digits + "-_")
_ESCAPE = re.compile(r"\\([0-3][0-7]{2})")


class BadNameError(ValueError):
    """A name that is refused, in the words of the API's ``FATAL problem``."""


def labels(given: str) -> list[str]:
    """The labels of a name, unescaped and in lower case. Raises `BadNameError`."""
    if not given:
        raise _bad("DomainNameEmpty (Domain name is empty)", given)
    text = given.removesuffix(".")
    found = []
    for part in text.split(".") if text else []:
        label = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), part).lower()
        if not label:
            raise _bad("DomainLabelEmpty (Domain label is empty)", given)
        if len(label) > LABEL_CHARACTERS_MOST:
            raise _bad("DomainLabelTooLong (Domain label is too long)", given)
        if "\\" in _ESCAPE.sub("", part) or not part.isascii() or any(ord(each) < 33 for each in part):
            raise _bad("UnsupportedCharacter (Value contains unsupported characters)", given)
        found.append(label)
    if sum(len(label) + 1 for label in found) > NAME_CHARACTERS_MOST:
        raise _bad("DomainNameTooLong (Domain name is too long)", given)
    return found


def _bad(fault: str, given: str) -> BadNameError:
    return BadNameError(f"FATAL problem: {fault} encountered with '{given}'")


def canonical(given: str) -> str:
    """The name as Route 53 returns it. Raises `BadNameError`."""
    return "".join(f"{_shown(label)}." for label in labels(given)) or "."


def _shown(label: str) -> str:
    return "".join(each if each in PLAIN else f"\\{ord(each):03o}" for each in label)


def order(name: str) -> str:
    """What a canonical name is sorted by."""
    return ".".join(reversed(name.removesuffix(".").split("."))) + "."


def within(name: str, zone: str) -> bool:
    """Whether a canonical name is at or below a zone's."""
    return name == zone or name.endswith(f".{zone}")
