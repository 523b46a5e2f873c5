"""``fencepost withdraw``: take an endpoint out of DNS. Nothing else ever does."""

from fencepost.cli import holds
from fencepost.cli.flags import Config, Confirm, Ever, Json, Reason, Timeout, confirm, duration, reason, until
from fencepost.cli.talk import Talk, answer, endpoint_name, talk
from fencepost.cli.terminal import note, until_text
from fencepost.ports import Refused


def withdraw(
    name: str,
    /,
    *,
    reason: Reason = None,
    confirm: Confirm = None,
    for_: Ever = None,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Take an endpoint out of DNS until it is resumed. Callers then get no address at all."""
    return talk(
        config,
        duration(timeout, "--timeout"),
        lambda ports: work(ports, name, why=reason, said=confirm, ends=until(for_, "ever"), as_json=json),
    )


async def work(talk: Talk, text: str, *, why: str | None, said: str | None, ends: int, as_json: bool) -> int:
    """Ask, order, wait."""
    name = endpoint_name(talk.region, text, await talk.names())
    before = await holds.standing(talk, name)
    if before.marker is None and not before.live.empty:
        what = "what stands there has no marker of ours, so it isn't ours to take away"
        raise Refused(what, where=name, hint=f"fencepost explain {name}")
    if before.hold is not None and before.hold.kind == "withdraw":
        if ends or before.hold.until_s:
            raise Refused("is withdrawn already", where=name, hint=f"fencepost resume {name}    brings it back")
        # Asked for twice, it is done: a script that repeats itself needs no error (external-dns #605).
        text = f"{name} is withdrawn already; nothing was changed\n  back     fencepost resume {name}"
        answer(text, {"done": "withdraw", "on": [name], "generation": before.generation.number}, as_json=as_json)
        return 0
    live = before.live
    addresses = live.a + live.aaaa
    listed = ", ".join(addresses[:6]) + (", …" if len(addresses) > 6 else "")
    note(f"{name} answers {len(addresses)} addresses now ({listed}).")
    note(f"Withdrawn, callers get none of them, {until_text(ends)}.")
    why = reason(why, f"withdraw {name}")
    confirm(f"This takes {name} out of DNS.", name, said)
    await talk.within(talk.store.put_order(holds.order("withdraw", name, talk, why, until=ends)), "the store")
    await talk.tell_history(name, "withdraw", why)
    marker = await holds.placed(talk, name, "withdraw", before.generation)
    text = f"{name} is withdrawn (gen {marker.generation}) {until_text(ends)}\n  back     fencepost resume {name}"
    answer(text, {"done": "withdraw", "on": [name], "generation": marker.generation.number}, as_json=as_json)
    return 0
