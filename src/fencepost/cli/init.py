"""``fencepost init``: a region.toml to begin with."""

from importlib import resources
from pathlib import Path

from fencepost.cli.flags import Json
from fencepost.cli.talk import answer
from fencepost.ports import Misconfigured
from fencepost.settings.initial import INITIAL


def init(*, sample: bool = False, config: str = "region.toml", json: Json = False) -> int:
    """Write a region.toml: the smallest useful one. A file that is there is left alone.

    Parameters
    ----------
    sample
        Write the sample region's file instead: every key, each with its meaning.
    config
        The file to write.
    """
    path = Path(config)
    text = resources.files("fencepost.dev").joinpath("sample.toml").read_text() if sample else INITIAL
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise Misconfigured(
            "is there already; it is left alone", where=config, hint=f"fencepost check {config}"
        ) from None
    except OSError as error:
        raise Misconfigured(f"can't be written: {error.strerror}", where=config) from None
    answer(
        f"wrote {config}\n  next     edit it, then  fencepost check  and  fencepost plan",
        {"done": "init", "path": str(path.absolute())},
        as_json=json,
    )
    return 0
