"""Where raysim keeps what makes later runs faster: it may be deleted at any time."""

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Returns the folder of one kind of things: in RAYSIM_CACHE if that is set, else in the user's cache folder."""
    given = os.environ.get("RAYSIM_CACHE")
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "raysim"
    return (Path(given).expanduser() if given else users) / name
