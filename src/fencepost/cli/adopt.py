"""``fencepost adopt``: take over records that stand without a marker, exactly as they are.

The order names the exact records that were seen. The planner's row has these records for its content and the enactors
write the marker beside them, in a write that requires them unchanged: nobody's answer changes. Only the next plan
brings the endpoint to what region.toml says, within the limits; so that is shown before anything is asked.

What has another owner's marker, or a CNAME at its name, is never taken over. What a person holds isn't either: the hold
says what the endpoint answers, and adopting would put that in place of what stands.
"""

import secrets
from typing import NamedTuple

from fencepost.cli import holds
from fencepost.cli.check import counted
from fencepost.cli.flags import Config, Confirm, Json, Note, Timeout, Yes, agree, confirm, duration
from fencepost.cli.preview import Preview, preview
from fencepost.cli.regions import region_of
from fencepost.cli.talk import Talk, answer, endpoint_name, talk_about
from fencepost.cli.terminal import note
from fencepost.core.fence import Foreign, Marker
from fencepost.core.judge import Kind, Pair, judge
from fencepost.core.record_set import Content, record_digest
from fencepost.core.store import Order, Row
from fencepost.core.traffic.desired import desired
from fencepost.core.zone import Live
from fencepost.ports import Misconfigured, Refused
from fencepost.settings.core_settings import offer

SHOWN_MOST = 8


class Taking(NamedTuple):
    """One endpoint to adopt: what stands, and what the plan after it asks (None: nothing is wanted for it yet).

    ``contested``: it has our marker, and another store of the same owner fights for it.
    """

    live: Live
    then: Content | None
    contested: bool = False

    @property
    def seen(self) -> str:
        """The digest that the order names."""
        return "-" if self.contested else record_digest(self.live.a, self.live.aaaa)


class Left(NamedTuple):
    """An endpoint that isn't adopted, and why; ``settled``: there is nothing to adopt, as it is ours, or empty."""

    why: Refused
    settled: bool = False


def adopt(
    *names: str,
    all_: bool = False,
    yes: Yes = False,
    confirm: Confirm = None,
    reason: Note = None,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Take over records that have no marker, as they stand; no address changes.

    Parameters
    ----------
    names
        Endpoints of region.toml.
    all_
        Every endpoint that waits for it.
    """
    if all_ == bool(names):
        raise Misconfigured("adopt takes endpoints, or --all", hint="fencepost status    lists what waits for it")
    return talk_about(
        region_of(config),
        duration(timeout, "--timeout"),
        lambda ports: work(ports, names, why=reason or "", yes=yes, said=confirm, as_json=json),
    )


async def work(talk: Talk, names: tuple[str, ...], *, why: str, yes: bool, said: str | None, as_json: bool) -> int:
    """Look, show, ask, order, wait."""
    found = await preview(talk)
    refuse_unloaded(found)
    taken = chosen(talk, found, names)
    if not taken:
        text = "nothing waits to be adopted"
        answer(text, {"done": "adopt", "on": []}, as_json=as_json)
        return 0
    for each in taken:
        for line in shown(each):
            note(line)
    ask(taken, yes=yes, said=said)
    for each in taken:
        name = each.live.name
        order = Order(secrets.token_hex(8), "adopt", name, adopt=each.seen, by=talk.by, reason=why)
        await talk.within(talk.store.put_order(order), "the store")
        what = "goes on, although another store fights for it" if each.contested else "adopts what stands"
        await talk.tell_history(name, f"adopt: {what}", why)
    word = await holds.planner_word(talk)
    done = [await marked(talk, each, word) for each in taken]
    lines = [told(each.live, marker) for each, marker in zip(taken, done, strict=True)]
    answer("\n".join(lines), {"done": "adopt", "on": [each.live.name for each in taken]}, as_json=as_json)
    return 0


def told(live: Live, marker: Marker) -> str:
    """That it is done."""
    return f"{live.name} is adopted: gen {marker.generation}, {counted(len(addresses(live)), 'address')} as they stood"


def refuse_unloaded(found: Preview) -> None:
    """Raise ``Refused`` where no planner could know of the order, or would go by another file than the one shown."""
    if not found.has_store or found.loaded is None:
        raise Refused(
            "this region has never run, and its planner is who adopts",
            where=found.region.path,
            hint="fencepost up    leaves unmarked records alone until you adopt them",
        )
    if found.loaded.region != found.region:
        what = "the file isn't what the region runs on, so what follows can't be told"
        raise Refused(what, where=found.region.path, hint="fencepost plan, then  fencepost reload")


def chosen(talk: Talk, found: Preview, names: tuple[str, ...]) -> list[Taking]:
    """What to adopt. Raises ``Refused`` for a name that isn't ours to take, or needs no adopting."""
    if not names:
        each = [taking(found, name.name) for name in talk.region.endpoints]
        for one in each:
            if isinstance(one, Left) and not one.settled:
                note(f"left alone  {one.why}")
        return [one for one in each if isinstance(one, Taking)]
    taken = []
    for name in dict.fromkeys(endpoint_name(talk.region, text) for text in names):
        one = taking(found, name)
        if isinstance(one, Left):
            raise one.why
        taken.append(one)
    return taken


def taking(found: Preview, name: str) -> Taking | Left:
    """One endpoint: what is taken over, or why it isn't."""
    live, row = found.lives[name], found.rows.get(name)
    owner = found.region.owner
    marker = live.marker
    if live.other:
        return Left(Refused(f"a {live.other[0]} record stands there; it is never taken over", where=name))
    if isinstance(marker, Foreign) or (marker is not None and marker.owner != owner):
        whose = f'its owner is "{marker.owner}"' if marker.owner else "something that is no marker of ours stands there"
        return Left(Refused(f"{whose}; it is never taken over", where=name, hint="left alone; ask its owner"))
    contested = row is not None and row.contested
    if marker is not None and not contested:
        return Left(Refused(f"is ours already (gen {marker.generation})", where=name), settled=True)
    if row is not None and row.hold is not None:
        hint = f"fencepost resume {name}    ends it; then adopt"
        word = "withdrawn" if row.withdrawn else f"held by a {row.hold.kind}"
        return Left(Refused(f"is {word}, and adopting would bring that about", where=name, hint=hint))
    if marker is not None:
        return Taking(live, wanted(found, name), contested=True)
    if live.empty:
        return Left(Refused("has no record to take over; a plan will create it", where=name), settled=True)
    if ours(live, row, owner):
        return Left(Refused("is known as ours; the enactors mark it by themselves", where=name), settled=True)
    return Taking(live, wanted(found, name))


def ours(live: Live, row: Row | None, owner: str) -> bool:
    """Whether the enactors write it without being asked: its newest row has these very addresses."""
    if row is None or row.contested:
        return False
    known = frozenset({record_digest(row.content.a, row.content.aaaa)}) if not row.adopt else frozenset()
    return judge(Pair(live, row, ours=known), owner).kind is not Kind.ASK


def wanted(found: Preview, name: str) -> Content | None:
    """What the inputs ask of an endpoint now."""
    each = next(each for each in found.region.endpoints if each.name == name)
    asked = desired(each.records, each.ttl_s, found.after.get(each.pool), offer(found.region, each))
    return asked.content if asked is not None else None


def addresses(live: Live) -> tuple[str, ...]:
    """What stands."""
    return live.a + live.aaaa


def shown(each: Taking) -> list[str]:
    """What is taken over and what follows, in lines."""
    live, then = each.live, each.then
    stands = listed(addresses(live))
    lines = [f" {live.name}   {stands}, ttl {live.ttl} s: {'ours, and contested' if each.contested else 'no marker'}"]
    if then is None:
        return [*lines, "   then it stays so: its pool asks for nothing yet"]
    come, go = moves(each)
    lines += [f"   +  {address}" for address in come] + [f"   -  {address}" for address in go]
    if then.ttl != live.ttl:
        lines.append(f"   ~  ttl {live.ttl} s -> {then.ttl} s")
    if len(lines) == 1:
        lines.append("   then nothing changes: it is as region.toml says")
    return lines


def moves(each: Taking) -> tuple[list[str], list[str]]:
    """The addresses that come, and those that go, by the plan after the adoption."""
    now, after = addresses(each.live), each.then.addresses if each.then is not None else addresses(each.live)
    return [text for text in after if text not in now], [text for text in now if text not in after]


def listed(texts: tuple[str, ...]) -> str:
    """Some addresses, or the first and how many."""
    more = f" and {len(texts) - SHOWN_MOST} more" if len(texts) > SHOWN_MOST else ""
    return ", ".join(texts[:SHOWN_MOST]) + more


def ask(taken: list[Taking], *, yes: bool, said: str | None) -> None:
    """Ask, where the plan after it takes away more than half of what callers get for the name, said again."""
    losing = [each for each in taken if 2 * len(moves(each)[1]) > len(addresses(each.live))]
    if any(moves(each) != ([], []) for each in taken):
        note("Adopting changes none of them. Lines with + and - follow by the next plan, at once.")
    if not losing:
        agree(f"Adopt {counted(len(taken), 'endpoint')}?", yes=yes)
        return
    name = losing[0].live.name
    gone = len(moves(losing[0])[1])
    more = f" (and {len(losing) - 1} more endpoints lose more than half)" if len(losing) > 1 else ""
    text = f"The plan after it takes {gone} of {len(addresses(losing[0].live))} addresses of {name} away{more}."
    confirm(text, name, said)


async def marked(talk: Talk, each: Taking, word: str) -> Marker:
    """Wait until the marker stands. Raises ``Refused`` if the records were changed meanwhile."""
    name = each.live.name

    async def look() -> Marker | Refused | None:
        live = (await talk.read_dns()).live(name)
        if isinstance(live.marker, Marker) and live.marker.owner == talk.region.owner:
            rows = await talk.within(talk.store.rows_of(name), "the store")
            over = not each.contested or (bool(rows) and not rows[0].contested)
            return live.marker if over else None
        if live.marker is not None or record_digest(live.a, live.aaaa) != record_digest(each.live.a, each.live.aaaa):
            hint = f"fencepost explain {name}; then adopt again"
            return Refused("was changed by another meanwhile; what stands now isn't taken over", where=name, hint=hint)
        return None

    found: Marker | Refused = await talk.until(
        look, f"{name}: the marker isn't in DNS yet{word}", hint=holds.planner_hint(talk, word)
    )
    if isinstance(found, Refused):
        raise found
    return found
