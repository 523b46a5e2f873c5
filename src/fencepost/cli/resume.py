"""``fencepost resume``: end what a person placed; the planner and the checks have their say again."""

from collections.abc import Sequence
from typing import NamedTuple

from fencepost.cli import holds, scopes
from fencepost.cli.flags import Config, Json, Note, Timeout, Yes, agree, duration
from fencepost.cli.fleet import resuming as fleet_words
from fencepost.cli.scopes import Pools, Scope
from fencepost.cli.talk import Talk, answer, talk
from fencepost.cli.terminal import note, until_text
from fencepost.core.fence import Hold, Marker
from fencepost.core.names import normalise
from fencepost.core.traffic.membership import Mode, OverrideKind
from fencepost.core.traffic.operator_word import FREEZING
from fencepost.ports import Misconfigured, PortError, Refused
from fencepost.roles.overrides import StoredOverride

NOUNS = {"observe": "observing", "withdraw": "withdrawal"}
"""What a word is called once it is a thing."""


class Found(NamedTuple):
    """What is to end: words in the store, and holds by endpoint."""

    words: tuple[StoredOverride, ...]
    held: tuple[tuple[str, Hold], ...]


def resume(
    *what: str,
    all_: bool = False,
    zone: str | None = None,
    reason: Note = None,
    yes: Yes = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """End a drain, keep, pause, rollback, repair, withdrawal or cordon before its time.

    Parameters
    ----------
    what
        Endpoints, addresses of targets, pools, zones, hosts, or "region".
    all_
        Everything that a person placed.
    zone
        A failure zone.
    """
    if all_ == bool(what or zone):
        raise Misconfigured("resume takes what to end, or --all", hint="fencepost status    lists what stands")
    if zone and len(what) > 1:
        raise Misconfigured("--zone goes with one pool at most", hint="fencepost resume --help")
    return talk(
        config,
        duration(timeout, "--timeout"),
        lambda ports: work(ports, what, zone, why=reason or "", yes=yes or not all_, as_json=json),
    )


def ending(words: Sequence[StoredOverride]) -> list[str]:
    """What ends, once for all pools that an address is in."""
    return list(dict.fromkeys(f"ends  {word.what} of {word.on} (by {word.by}: {word.reason})" for word in words))


def ended(words: Sequence[StoredOverride]) -> list[str]:
    """That it is over, likewise."""
    return list(dict.fromkeys(f"{word.on}: the {NOUNS.get(word.what, word.what)} is over" for word in words))


async def work(talk: Talk, what: tuple[str, ...], zone: str | None, *, why: str, yes: bool, as_json: bool) -> int:
    """Find it, end it, wait until that shows."""
    known = await known_pools(talk)
    hosts = {} if zone else await fleet_words.spoken_of(talk, what)
    left = tuple(each for each in what if each not in hosts)
    found = await find(talk, known, left, zone) if left or not hosts or not what else Found((), ())
    if not found.words and not found.held and not hosts:
        said = f" on zone {zone}" if zone else f" on {', '.join(what)}" if what else ""
        raise Refused(f"nobody placed anything{said}", hint="fencepost status    lists what stands")
    for text in ending(found.words):
        note(text)
    for name, hold in found.held:
        note(f"ends  {hold.kind} of {name}")
    for host, said in sorted(hosts.items()):
        note(f"ends  {said} of host {host}")
    for text in returning_dead(known, found.words):
        note(text)
    agree(f"End {'all of them' if len(found.words) + len(found.held) + len(hosts) > 1 else 'it'}?", yes=yes)
    for word in found.words:
        await talk.within(talk.store.drop_override(word.id), "the store")
        await talk.tell_history(word.on, f"{word.what} ended", why)
    for name, hold in found.held:
        await talk.within(talk.store.put_order(holds.order("release", name, talk, why, hold=hold.id)), "the store")
        await talk.tell_history(name, f"{hold.kind} released", why)
    told = await fleet_words.take_back(talk, hosts, why)
    told += ended(found.words)
    for name, hold in found.held:
        listed = any(each.name == name for each in known.region.endpoints)
        marker = await holds.released(talk, name, hold.id, listed=listed)
        told.append(
            f"{name}: the {NOUNS.get(hold.kind, hold.kind)} is over; gen {marker.generation} follows the planner again"
        )
    if found.words:
        await words_over(talk, found.words)
        told += [f"  remains  {text}" for text in remaining(known, found.words)]
    done = [word.on for word in found.words] + [name for name, _ in found.held] + sorted(hosts)
    answer("\n".join(told), {"done": "resume", "on": done}, as_json=as_json)
    return 0


def returning_dead(known: Pools, ending: tuple[StoredOverride, ...]) -> list[str]:
    """Drained targets that look dead and come back with their drain's end, as a line for each pool."""
    said = []
    for pool, row in sorted(known.rows.items()):
        drains = [Scope(word.pool, word.target, word.zone) for word in ending if word.what is OverrideKind.DRAIN]
        dead = [
            member.key
            for member in row.members
            if member.healthy is False and any(scope.covers(pool, member) for scope in drains)
        ]
        if dead:
            who = f"{', '.join(dead)} look{'s' if len(dead) == 1 else ''} dead"
            why = "the pool is paused" if row.mode is not Mode.ENABLED else "limits may keep what comes back"
            said.append(f"{who} (pool {pool}): {why}, so callers may get it again")
    return said


def remaining(known: Pools, ended: tuple[StoredOverride, ...]) -> list[str]:
    """The words that still hold for some of the targets of which others were ended, as lines."""
    members = [(pool, member) for pool, row in known.rows.items() for member in row.members]
    freed = [
        (pool, member)
        for pool, member in members
        if any(Scope(word.pool, word.target, word.zone).covers(pool, member) for word in ended)
    ]
    return [
        f"{word.what} of {word.on}, {until_text(word.until)} (by {word.by}: {word.reason})"
        for word in known.words
        if word not in ended
        and any(Scope(word.pool, word.target, word.zone).covers(pool, member) for pool, member in freed)
    ]


async def known_pools(talk: Talk) -> Pools:
    """The region as it runs; empty where it never ran, for holds stand in DNS."""
    try:
        return await scopes.pools(talk)
    except Refused:
        return Pools(talk.region, {}, ())


async def find(talk: Talk, known: Pools, what: tuple[str, ...], zone: str | None) -> Found:
    """What the words name. Raises ``Refused`` for a word that names nothing that anybody placed."""
    if what and zone is None and all(targeted(text, known) for text in what):
        meant = [word for word in known.words if any(targets(text, word) for text in what)]
        return Found(tuple(meant), ())  # no hold is named, so DNS needn't be read
    if zone is not None:
        scope = scopes.zone_scope(known, zone, what[0] if what else "")
        meant = [word for word in known.words if word.zone == scope.zone and (not what or word.pool == what[0])]
        return Found(tuple(meant), ())
    held = dict(await all_held(talk, known))
    if not what:
        return Found(known.words, tuple(sorted(held.items())))
    words: list[StoredOverride] = []
    ending: dict[str, Hold] = {}
    for text in what:
        named = [word for word in known.words if targets(text, word)]
        name = name_of(text, held)
        if name:
            ending[name] = held[name]
        elif not named:
            raise Refused(f"nobody placed anything on {text}", hint="fencepost status    lists what stands")
        words += named
    return Found(tuple(words), tuple(ending.items()))


def targets(text: str, word: StoredOverride) -> bool:
    """Whether a word of the command line names an override."""
    return text in (word.id, word.target) or names_scope(text, word)


def targeted(text: str, known: Pools) -> bool:
    """Whether it names overrides and can't be the name of an endpoint as well."""
    if not any(targets(text, word) for word in known.words):
        return False
    return not any(text.lower() in (each.name, each.name.partition(".")[0]) for each in known.region.endpoints)


def names_scope(text: str, word: StoredOverride) -> bool:
    """Whether a word of the command line is the zone, pool or region that an override speaks of."""
    if word.target:
        return False
    if word.zone:
        return text in (word.zone, f"zone {word.zone}", word.on)
    return text == (word.pool or "region")


def name_of(text: str, held: dict[str, Hold]) -> str:
    """The held endpoint a word means, or ""."""
    try:
        name = normalise(text)
    except ValueError:
        return ""
    short = [each for each in held if each.partition(".")[0] == name]
    return name if name in held else short[0] if len(short) == 1 else ""


async def all_held(talk: Talk, known: Pools) -> list[tuple[str, Hold]]:
    """Every endpoint of ours that a person holds: by its marker, or by its newest row."""
    found: dict[str, Hold] = {}
    try:
        dns = await talk.read_dns()
    except PortError as error:
        if not known.words:
            raise
        note(f"DNS can't be read, so holds that only it knows are not looked at ({error})")
        if error.hint:
            note(f"  try      {error.hint}")
    else:
        for name in sorted({*dns.names(), *(endpoint.name for endpoint in known.region.endpoints)}):
            marker = dns.live(name).marker
            if isinstance(marker, Marker) and marker.owner == talk.region.owner and marker.hold is not None:
                found[name] = marker.hold
    try:
        _, rows = await talk.within(talk.store.newest_rows(None), "the store")
    except PortError:
        rows = ()
    for row in rows:
        if row.hold is not None and (row.name not in found or row.hold.id > found[row.name].id):
            found[row.name] = row.hold
    return sorted(found.items())


async def words_over(talk: Talk, words: tuple[StoredOverride, ...]) -> None:
    """Wait until no membership row shows them any more."""

    async def look() -> bool | None:
        known = await scopes.pools(talk)
        return True if all(over(known, word) for word in words) else None

    word = await holds.planner_word(talk)
    what = f"{', '.join(each.on for each in words)}: not taken up yet{word}"
    await talk.until(look, what, hint=holds.planner_hint(talk, word))


def over(known: Pools, word: StoredOverride) -> bool:
    """Whether no row shows this word; another on the same target may show instead."""
    scope = Scope(word.pool, word.target, word.zone)
    whole = not word.target and not word.zone
    others = [each for each in known.words if each.id != word.id]
    for pool, row in known.rows.items():
        if scope.pool not in ("", pool):
            continue
        if whole and word.what in FREEZING:
            file_mode = Mode(known.region.mode)
            frozen = any(
                each.what in FREEZING and each.pool in ("", pool) and not each.zone and not each.target
                for each in others
            )
            if row.mode is not file_mode and not frozen:
                return False
            continue
        for member in row.members:
            told = any(
                each.what is word.what and Scope(each.pool, each.target, each.zone).covers(pool, member)
                for each in others
            )
            if scope.covers(pool, member) and member.forced is word.what and not told:
                return False
    return True
