"""What a region has loaded, which need not be what its file says now."""

import msgspec

from fencepost.core.traffic.membership import Membership
from fencepost.ports import Inputs, Misconfigured, StorePort
from fencepost.roles.configuration import Loaded, decode
from fencepost.settings import Region


def loaded_in(inputs: Inputs) -> Loaded | None:
    """The configuration the region runs on; None if none was ever loaded. Raises ``Misconfigured``."""
    try:
        return decode(inputs.config)
    except msgspec.MsgspecError as error:
        raise another_version(error) from None


def pools_in(inputs: Inputs) -> dict[str, Membership]:
    """Each pool's membership row. Raises ``Misconfigured``."""
    rows = {pool: body for pool, (_, body) in inputs.membership.items() if body}
    try:
        return {pool: msgspec.json.decode(body, type=Membership) for pool, body in rows.items()}
    except msgspec.MsgspecError as error:
        raise another_version(error) from None


def another_version(error: Exception) -> Misconfigured:
    """The store's rows can't be read by this version."""
    hint = "use the fencepost that the region runs, or start the region with this one"
    return Misconfigured(f"the store holds rows of another version ({error})", hint=hint)


async def of_store(region: Region) -> Loaded | None:
    """The configuration in a region's store. Raises a ``PortError``."""
    from fencepost import assembly

    store: StorePort = assembly.open_store(region)
    try:
        return loaded_in(await store.inputs())
    finally:
        await store.close()
