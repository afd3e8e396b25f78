"""The things beside the scenario that results depend on: raysim's version, the user's own modules, and data files.

They are kept in run.json, so that a sweep knows which runs are out of date, and why. Files and folders are known by
fingerprints: hashes of their content, which are the same on every machine.
"""

import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from raysim.data.sources.reading import kept
from raysim.parts.own_code import Sources, parts_in, sources_in
from raysim.scenario.run_settings import computes_on
from raysim.scenario.schema import Scenario
from raysim.version import __version__
from results.location import is_local, location, stamps

LARGE = 2**26  # bytes; fingerprints of larger files are cached for the next process


def fingerprint(path: str | Path) -> str | None:
    """Returns the fingerprint of a file, or of all files in a folder; None if it is not there.

    On an object store it is of sizes and of what the store says of each file's content, so that nothing is fetched.
    """
    where = location(path).expanduser().absolute()
    try:
        if not is_local(where):
            found = stamps(where)
            return _short(json.dumps(found).encode()) if found else None
        stats = [(name, file.stat()) for name, file in files_in(where)]
        if not stats:
            return None
        size = sum(stat.st_size for _, stat in stats)
        seen = _short(json.dumps([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]).encode())
        if size < LARGE:
            return _of(where, seen)
        names = (str(where).encode(), seen.encode())
        return (
            kept("fingerprints", names, lambda: np.frombuffer(_of(where, seen).encode(), np.uint8)).tobytes().decode()
        )
    except OSError:  # the run reports it when it reads the file
        return None


def files_in(where: Path) -> Iterator[tuple[str, Path]]:
    """Yields the files of a folder in a fixed order, with their names there; a file itself has an empty one."""
    if where.is_file():
        yield "", where
    for file in sorted(where.rglob("*")) if where.is_dir() else ():
        if file.is_file():
            yield file.relative_to(where).as_posix(), file


@lru_cache(maxsize=1024)
def _of(where: Path, seen: str) -> str:
    """Reads all files in a place. seen: their names, sizes and times, which show when they must be read again."""
    del seen
    hashed = hashlib.sha256()
    for name, file in files_in(where):
        with file.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").digest()
        hashed.update(name.encode() + b"\0" + content)
    return hashed.hexdigest()[:16]


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


Dependencies = dict[str, Any]
Info = dict[str, Any]  # the content of a run.json


def depends_on(scenario: Scenario) -> Dependencies:
    """Returns raysim's version, and fingerprints of own modules and of files by name; null if there is none.

    Reads all files that the parts name, which may take long.
    """
    of_run = scenario.run.model_copy(update={"log": (), "observers": ()})  # which change no results
    scenario = scenario.model_copy(update={"run": of_run})
    files = sorted({str(path) for part in parts_in(scenario) for path in part.reads()})
    return {
        "raysim": __version__,
        "modules": {module: hash_of(sources) for module, sources in sources_in(scenario).items()},
        "files": {path: fingerprint(path) for path in files},
    }


def hash_of(sources: Sources) -> str | None:
    """Returns a hash of the files that a module is made of; None if they are not known."""
    hashed = hashlib.sha256()
    for path, source in sources.items():
        hashed.update(path.as_posix().encode() + b"\0" + hashlib.sha256(source.content).digest())
    return hashed.hexdigest()[:16] if sources else None


def changes(before: Dependencies, now: Dependencies) -> Iterator[str]:
    """Yields what has changed since a run, and on its way.

    A file that is missing, or was missing before, counts as unchanged.
    """
    if not before:
        yield "what it depended on is not known"
        return
    yield from before.get("mixed", ())
    if before["raysim"] != now["raysim"]:
        yield f"raysim {before['raysim']} -> {now['raysim']}"
    known = before["modules"]
    for module, found in now["modules"].items():
        if found is None:
            yield f"the source of module {module} cannot be read"
        elif known.get(module) != found:
            yield f"module {module} changed"
    known = before["files"]
    for file, found in now["files"].items():
        if None not in (found, known.get(file)) and known[file] != found:
            yield f"data file {file} changed"


def code_changes(before: Info, now: Info, what: str) -> list[str]:
    """Returns a sentence with all on which bits may depend and that has changed since an earlier run.json, beside the
    scenario: modules, data, versions, devices. It is in a list, which is empty where nothing has. what: was done after
    the changes."""
    known = before.get("depends_on") or {}
    found = [*changes({**known, "mixed": []}, now["depends_on"])] if known else ["unknown"]
    old, new = before.get("versions") or {}, now["versions"]
    for name in ("python", "numpy", "torch"):
        if None not in (old.get(name), new[name]) and old[name] != new[name]:
            found.append(f"{name} {old[name]} -> {new[name]}")
    asked, asks = (one["scenario"]["resources"] for one in (before, now))
    on, others = computes_on(asked), computes_on(asks)
    found += [f"resources.{key} {asked.get(key)} -> {asks.get(key)}" for key in sorted(on) if on[key] != others[key]]
    return [f"{what} after a change: {', '.join(found)}"] if found else []
