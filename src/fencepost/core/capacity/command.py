"""The command that an instance is run with: words in which ``{address}`` and the like stand for what is known later.

Only these five stand for something; any other brace is a brace. The words are never joined and given to a shell, so
nothing in an address or a name can become another command.
"""

import re
from collections.abc import Sequence

from fencepost.core.capacity.messages import Instance

PLACEHOLDERS = ("id", "name", "address", "port", "pool")
"""What may stand in braces: of the attempt its id, of the instance the rest."""

_BRACED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def unknown_words(template: Sequence[str]) -> tuple[str, ...]:
    """The words in braces that stand for nothing, in order of appearance, each once."""
    found = [word for part in template for word in _BRACED.findall(part) if word not in PLACEHOLDERS]
    return tuple(dict.fromkeys(found))


def filled(instance: Instance) -> tuple[str, ...]:
    """An instance's command with everything known: what its driver starts."""
    known = {
        "id": instance.id,
        "name": instance.name,
        "address": instance.address,
        "port": str(instance.port) if instance.port else "",
        "pool": instance.pool,
    }
    return tuple(_BRACED.sub(lambda found: known.get(found[1], found[0]), part) for part in instance.command)
