"""Files of runs that are damaged at random."""

import json
import random
from pathlib import Path
from typing import Any

VALUES: list[Any] = [None, True, -1, 1.5, 10**30, "text", "é\u202e\x1b[31m", [], [1], {}, {"a": 1}]


def damage(folder: Path, draws: random.Random) -> str:
    """Damages one file of a folder, and returns which and how."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file, other = draws.choice(files), draws.choice(files)
    how = draws.choice(
        ["cut", "empty", "remove", "noise", "other", "folder", "flip", "flip", "value", "value", "value"]
    )
    content = bytearray(file.read_bytes())
    if how == "value" and file.suffix == ".json":
        return f"{file.relative_to(folder)}: {_another_value(file, draws)}"
    if how in ("flip", "value") and content:
        content[draws.randrange(len(content))] ^= 1 << draws.randrange(8)
        file.write_bytes(content)
    elif how == "cut":
        file.write_bytes(content[: draws.randrange(len(content) + 1)])
    elif how == "noise":
        file.write_bytes(draws.randbytes(len(content)))
    elif how == "other":
        file.write_bytes(other.read_bytes())
    elif how == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()
        if how == "folder":
            file.mkdir()
    return f"{file.relative_to(folder)}: {how}"


def _another_value(file: Path, draws: random.Random) -> str:
    """Changes a value at any depth of a JSON file, and returns which, and to what."""
    info = json.loads(file.read_text(encoding="utf-8"))
    block, path = info, []
    while True:
        key = draws.choice(sorted(block))
        path.append(key)
        if not (isinstance(block[key], dict) and block[key] and draws.random() < 0.7):
            break
        block = block[key]
    block[key] = draws.choice(VALUES)
    file.write_text(json.dumps(info), encoding="utf-8")
    return f"{'.'.join(path)} = {block[key]!r}"
