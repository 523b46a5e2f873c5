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
    """Each pool's membership row."""
    return {pool: msgspec.json.decode(body, type=Membership) for pool, (_, body) in inputs.membership.items() if body}


async def of_store(region: Region) -> Loaded | None:
    """The configuration in a region's store. Raises a ``PortError``."""
    from fencepost import assembly

    store: StorePort = assembly.open_store(region)
    try:
        return loaded_in(await store.inputs())
    finally:
        await store.close()
