"""History as sentences: plain English for people, the store's own words for programs."""

import asyncio
from pathlib import Path

import pytest

from fencepost.adapters.store_sqlite import SqliteStore
from fencepost.cli.acts import act, write
from fencepost.cli.drain import placed
from fencepost.cli.history import document, line, what
from fencepost.cli.resume import ended, ending
from fencepost.cli.scopes import Scope
from fencepost.cli.talk import Talk
from fencepost.core.instant import SECOND
from fencepost.core.traffic.membership import OverrideKind
from fencepost.ports import HistoryRow
from fencepost.roles.overrides import StoredOverride
from fencepost.settings import load

API = "api.example.test"


@pytest.mark.parametrize(
    ("on", "text", "said"),
    [
        ("127.0.1.2", "drain; reason: disk swap", "drains 127.0.1.2; reason: disk swap"),
        ("zone b", "keep", "keeps zone b in service"),
        (API, "rollback to plan 41; reason: bad list", f"rolls {API} back to plan 41; reason: bad list"),
        (API, "withdraw; reason: moved; reason: twice", f"withdraws {API}; reason: moved; reason: twice"),
        (API, "withdraw released", f"ends the withdrawal of {API}"),
        (API, "repair: 192.0.2.1, 192.0.2.2", f"repairs {API}: 192.0.2.1, 192.0.2.2"),
        ("127.0.1.2", "drain ended", "ends the drain of 127.0.1.2"),
        ("b1", "fleet: drain 1; reason: try", "drains host b1; reason: try"),
        ("b1", "fleet: drain ended", "ends the drain of host b1"),
        ("web", "fleet: launch of 6 (key k1); reason: more", "launches 6 of web (key k1); reason: more"),
        ("web-k3v9q2mx", "fleet: terminate 1", "terminates web-k3v9q2mx"),
        ("eu-1", "reload: revision 4, ttl", ""),
        ("192.0.2.1", "drain ended: it had been resumed before the store was lost", ""),
    ],
)
def test_what_a_person_did_is_a_sentence(on: str, text: str, said: str) -> None:
    """Subject, verb, object: "root withdraw released" had to be guessed at. What isn't known stands as it is."""
    assert act(on, text) == said
    row = HistoryRow("operator", on, "root", text, 0)
    assert what(row, None) == (said or f"{on} {text}")
    assert document(row)["text"] == text, "programs read what the store says"


def test_a_write_to_the_endpoint_asked_about_says_what_it_replaced() -> None:
    """ "- -> 1 in 44 ms" is no English; beside other names' lines the arrow is short and stays."""
    assert write("- -> 1 in 44 ms") == "wrote gen 1, the first, in 44 ms"
    assert write("3 -> 4 (epoch 9) in 85 ms") == "wrote gen 4 (epoch 9), over gen 3, in 85 ms"
    assert write("healed: gen 3, second write; it was empty for 6 ms") == ""
    row = HistoryRow("enacted", API, "enactor/c", "- -> 1 in 44 ms", 0)
    assert line(row, API).endswith("enactor c  wrote gen 1, the first, in 44 ms")
    assert what(row, None) == f"{API} - -> 1 in 44 ms"


def test_an_address_of_two_pools_is_told_once() -> None:
    """A word stands in each pool; `drain` and `resume` said the same line twice, as if it had been two things."""
    both = [Scope(pool, "127.0.1.2") for pool in ("api", "www")]
    assert placed(OverrideKind.KEEP, both, 0) == placed(OverrideKind.KEEP, both[:1], 0)
    words = [
        StoredOverride(pool, pool=pool, target="127.0.1.2", what=OverrideKind.DRAIN, by="ada")
        for pool in ("api", "www")
    ]
    assert ended(words) == ["127.0.1.2: the drain is over"]
    assert ending(words) == ["ends  drain of 127.0.1.2 (by ada: )"]


def test_what_a_person_did_once_is_one_row_however_many_pools_an_address_is_in(tmp_path: Path) -> None:
    """docs/operating/commands.md, history: one line a thing. A drain of an address in two pools made two alike, and so
    did its end.
    """
    path = tmp_path / "region.toml"
    path.write_text((Path(__file__).parents[2] / "src/fencepost/dev/sample.toml").read_text())
    talk = Talk(load(path, {}), SECOND)

    async def act() -> list[tuple[str, str]]:
        talk._store = SqliteStore.open(tmp_path / "one.db", create=True)
        for text in ("drain", "drain", "drain ended", "drain ended"):
            await talk.tell_history("127.0.1.2", text, "disk")
        await talk.tell_history("127.0.1.3", "drain", "disk")
        rows = await talk.store.history()
        await talk.close()
        return [(row.on, row.text) for row in rows]

    told = asyncio.run(act())
    assert [on for on, _ in told] == ["127.0.1.2", "127.0.1.2", "127.0.1.3"]
    assert [text.split(";")[0] for _, text in told] == ["drain", "drain ended", "drain"]
