"""The values in run.json that are read, and their types."""

import hashlib
from typing import Any

from results.texts import quoted

Kind = type | tuple[type, ...]
_SHAPE = (list, dict)  # of one array of inputs, or of several by name

# The types of values, as far as they are read. Any may be missing; there may be others.
_GIVEN: dict[str, Kind] = {
    **dict.fromkeys(("run", "status"), str),
    **dict.fromkeys(("scenario", "seconds", "totals", "holder", "rows"), dict),
}
_OR_NULL: dict[str, Kind] = {
    **dict.fromkeys(
        ("name", "scenario_hash", "started_at", "finished_at", "ended_early", "ended_by", "error", "declared_over"), str
    ),
    **dict.fromkeys(("seed", "parameters", "classes"), int),
    **dict.fromkeys(
        ("versions", "forked_from", "depends_on", "git", "diverged", "digest", "sweep", "left", "best"), dict
    ),
    **dict.fromkeys(("machines", "notes", "resumed", "workers"), list),
    "input_shape": _SHAPE,
}
_NUMBER = (int, float)
_IN_BLOCKS: dict[str, Kind] = {  # null, too
    **dict.fromkeys(("totals", "seconds"), _NUMBER),
    **dict.fromkeys(("digest", "versions"), str),
    "rows": int,
}
_IN_LISTS: dict[str, Kind] = {"machines": dict, "workers": dict, "resumed": dict, "notes": str}
_BLOCKS: dict[str, dict[str, Kind]] = {  # all of them, if there is the block
    "depends_on": {"raysim": str, "modules": dict, "files": dict},
    "best": {"split": str, "metric": str, "value": _NUMBER, "step": int},
    "left": {"step": int, "virtual_time": _NUMBER},
    "diverged": {"what": str, "round": int, "version": int},
    "forked_from": {"run": str, "version": int},
}
_PARTS = ("data", "model", "algorithm", "topology", "world", "run")  # of its scenario
_WORDS: dict[Kind, str] = {
    str: "text",
    dict: "a block of keys",
    int: "an integer",
    list: "a list",
    _NUMBER: "a number",
    _SHAPE: "a list, or a block of them",
}


def wrong_info(info: dict[str, Any]) -> list[str]:
    """Returns what is wrong with the types of values in run.json, or else with its digest, a line for each."""
    found = [_wrong(key, info[key], kind) for key, kind in _GIVEN.items() if key in info]
    found += [_wrong(key, info[key], kind) for key, kind in _OR_NULL.items() if info.get(key) is not None]
    for block, kind in _IN_BLOCKS.items():
        inner = info.get(block)
        pairs = inner.items() if isinstance(inner, dict) else ()
        found += [_wrong(f"{block}.{key}", value, kind) for key, value in pairs if value is not None]
    for key, kind in _IN_LISTS.items():
        inner = info.get(key)
        found += [_wrong(f"{key}.{n}", one, kind) for n, one in enumerate(inner)] if isinstance(inner, list) else []
    for block, kinds in _BLOCKS.items():
        if isinstance(inner := info.get(block), dict):
            found += [_wrong(f"{block}.{key}", inner.get(key), kind) for key, kind in kinds.items()]
    shapes = info.get("input_shape") or []
    for shape in shapes.values() if isinstance(shapes, dict) else [shapes]:
        sizes = shape if isinstance(shape, list) else [None]
        found += [_wrong("input_shape", size, int) for size in sizes]
    for n, machine in enumerate(info.get("machines") or ()) if not any(found) else ():
        workers = machine.get("workers")
        found.append(_wrong(f"machines.{n}.workers", workers, list))
        found += [_wrong(f"machines.{n}.workers", one, str) for one in workers] if isinstance(workers, list) else []
    scenario = info.get("scenario")
    if isinstance(scenario, dict):
        parts = {key: scenario[key] for key in _PARTS if scenario.get(key) is not None}
        found += [_wrong(f"scenario.{key}", part, dict) for key, part in parts.items()]
        names = {key: part.get("name") for key, part in parts.items() if isinstance(part, dict)}
        found += [_wrong(f"scenario.{key}.name", name, str) for key, name in names.items() if name is not None]
    found.append(_wrong_digest(info) if not any(found) else None)
    return [text for text in found if text]


def _wrong_digest(info: dict[str, Any]) -> str | None:
    """Returns what is wrong with a digest whose parts disagree, as after a change by hand."""
    digests = info.get("digest") or {}
    model, tables, run = (digests.get(key) for key in ("model", "tables", "run"))
    if not (model and tables and run) or hashlib.sha256(f"{model}{tables}".encode()).hexdigest() == run:
        return None
    return f"digest.run: must be that of digest.model and digest.tables together, got {quoted(run)}"


def _wrong(key: str, value: Any, kind: Kind) -> str | None:
    right = isinstance(value, kind) and not isinstance(value, bool)
    return None if right else f"{key}: must be {_WORDS[kind]}, got {quoted(value)}"
