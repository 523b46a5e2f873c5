"""Overrides (drain, keep, pause), and what is remembered of each id, as one value.

Enactors come to a new store one after the other, and one that was stopped may come days later. So the store remembers
of each id that ever stood here where it came from: from a person ("") or from a lost store (its identity). An id that
is known and doesn't stand was resumed here, and stays so. That isn't cleaned up, since it can't be known when the last
enactor has come.
"""

from collections.abc import Sequence

from msgspec import Struct, structs

from fencepost.ports import PutBack


class Words(Struct, frozen=True, gc=False):
    """The overrides: each one's JSON by id, each id's origin, and as of which snapshot a lost store's were put back."""

    words: dict[str, bytes] = {}
    origins: dict[str, str] = {}
    put_back: dict[str, int] = {}

    def placed(self, name: str, body: bytes) -> "Words":
        """With an override that a person placed."""
        return structs.replace(self, words={**self.words, name: body}, origins={**self.origins, name: ""})

    def ended(self, name: str) -> "Words":
        """Without an override; its id stays known."""
        return structs.replace(self, words={one: body for one, body in self.words.items() if one != name})

    def restored(self, back: PutBack) -> tuple["Words", Sequence[str]]:
        """With what a lost store held, and the ids that changed. To be asked only if ``back`` is newer than the last.

        Ids known here are left alone, but those put back from the same lost store: they are as the newer memory says.
        """
        words = {
            name: body for name, body in self.words.items() if self.origins.get(name) != back.lost or name in back.words
        }
        origins = dict(self.origins)
        for name, body in back.words.items():
            if name not in origins or (origins[name] == back.lost and name in words):
                words[name], origins[name] = body, back.lost
        changed = sorted({name for name, _ in self.words.items() ^ words.items()})
        return Words(words, origins, {**self.put_back, back.lost: back.snapshot}), changed
