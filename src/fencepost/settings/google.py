"""Names as Google Cloud gives them: a project, and a managed zone of Cloud DNS.

They become part of the path that is asked, so what is none is refused at load: "../../z" would be another path.
"""

import re
from typing import Any

from fencepost.settings.values import UnfitError, string

_PROJECT = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?:)?[a-z][a-z0-9-]{4,28}[a-z0-9]|[0-9]{1,20}")
_MANAGED_ZONE = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?|[0-9]{1,20}")


def project(value: Any) -> str:
    """Read a project's id (Resource Manager, "Creating and managing projects"), a domain's old one, or its number."""
    text = string(value)
    if not _PROJECT.fullmatch(text):
        raise UnfitError('is no id of a project: 6 to 30 of a to z, 0 to 9 and hyphen, like "my-project-123"')
    return text


def managed_zone(value: Any) -> str:
    """Read a managed zone's name (Cloud DNS API, ManagedZone), or its id."""
    text = string(value)
    if not _MANAGED_ZONE.fullmatch(text):
        hint = 'not the domain\'s: 1 to 63 of a to z, 0 to 9 and hyphen, beginning with a letter, like "example-com"'
        raise UnfitError(f"is no name of a managed zone, which is {hint}")
    return text
