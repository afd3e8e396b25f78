"""The folder below which runs make theirs: whether it can be made is known before a run starts."""

from __future__ import annotations

import os
from pathlib import Path

from raysim.errors import CannotMakeFolder

_LONGEST = 255  # bytes in the name of a folder, on all usual file systems


def require_folder(out: str | Path) -> None:
    """Raises CannotMakeFolder if no folder can be made below `out`. It makes none itself."""
    folder = Path(out).absolute()
    if long := next((part for part in folder.parts if len(os.fsencode(part)) > _LONGEST), None):
        raise CannotMakeFolder(out, f"{long[:50]!r}... is a name of more than {_LONGEST} bytes")
    try:
        there = next(place for place in (folder, *folder.parents) if place.exists())
    except OSError as error:
        raise CannotMakeFolder(out, str(error.strerror)) from error
    if not there.is_dir():
        raise CannotMakeFolder(out, f"{there} is no folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise CannotMakeFolder(out, f"you may not write to {there}")
