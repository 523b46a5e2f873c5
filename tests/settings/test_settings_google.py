"""Names of Google Cloud's: they become part of a path, so what is none is refused at load."""

import pytest
from test_settings_refused import BASE

from fencepost.settings import judge

TEXT = BASE.replace(
    'provider = "embedded"',
    'provider = "clouddns"\nproject = "PROJECT"\nmanaged_zone = "ZONE"\ntoken = { env = "TOKEN" }',
)


def mistakes(project: str, zone: str) -> list[str]:
    """What is wrong with a file that names these."""
    text = TEXT.replace("PROJECT", project).replace("ZONE", zone)
    return [str(each) for each in judge(text, "region.toml", {"TOKEN": "ya29.x"}).mistakes]


@pytest.mark.parametrize(
    ("project", "zone"),
    [
        ("my-project", "z"),
        ("my-project-123", "example-com"),
        ("example.com:my-project", "a" * 63),
        ("415104041262", "5941309236410123"),
    ],
)
def test_names_as_google_gives_them(project: str, zone: str) -> None:
    """A project's id, with its domain before it in old ones, or its number; a managed zone's name or id."""
    assert mistakes(project, zone) == []


@pytest.mark.parametrize("zone", ["../../z", "a/b", "", "Z", "example.com", "-a", "a-", "a%2fb", "9a", "a" * 64, "z?x"])
def test_what_is_no_managed_zone(zone: str) -> None:
    """Cloud DNS API, ManagedZone: 1 to 63 of a to z, 0 to 9 and hyphen, from a letter to a letter or digit."""
    (found,) = mistakes("my-project", zone)
    assert found.startswith(f'region.toml:7: managed_zone "{zone[:50]}')
    assert "is no name of a managed zone" in found
    assert 'like "example-com"' in found


@pytest.mark.parametrize("project", ["../../z", "a/b", "short", "My-project", "a.b:../c", "my-project-", "x" * 31])
def test_what_is_no_project(project: str) -> None:
    """Resource Manager, projects: 6 to 30 of a to z, 0 to 9 and hyphen, from a letter to a letter or digit."""
    (found,) = mistakes(project, "example-com")
    assert found.startswith(f'region.toml:6: project "{project}" is no id of a project')
