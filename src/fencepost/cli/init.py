"""``fencepost init``: a region.toml to begin with."""

from importlib import resources
from pathlib import Path

from fencepost.cli.flags import Json
from fencepost.cli.talk import answer
from fencepost.ports import Misconfigured
from fencepost.roles.whole_file import make_whole, why_unwritten
from fencepost.settings.initial import INITIAL


def init(*, sample: bool = False, config: str = "region.toml", json: Json = False) -> int:
    """Write a region.toml: the smallest useful one. A file with something in it is left alone.

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
        made = blank(path) and make_whole(path.resolve(), text.encode(), mode=0o666, over_empty=True)
    except OSError as error:
        why, hint = why_unwritten(error, config, "")
        raise Misconfigured(f"can't be written: {why}", where=config, hint=hint) from None
    if not made:
        raise Misconfigured("is there already; it is left alone", where=config, hint=f"fencepost check {config}")
    answer(
        f"wrote {config}\n  next     edit it, then  fencepost check  and  fencepost plan",
        {"done": "init", "path": str(path.absolute())},
        as_json=json,
    )
    return 0


def blank(path: Path) -> bool:
    """Whether nothing would be lost by writing there: no file, or one of white space. Raises ``OSError``."""
    if not path.exists() and not path.is_symlink():
        return True
    return path.is_file() and path.stat().st_size < 4096 and not path.read_bytes().strip()
