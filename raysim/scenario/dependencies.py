"""The things beside the scenario that results depend on: raysim's version, the user's own modules, and data files.

They are kept in run.json, so that a sweep knows which runs are out of date, and why.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raysim.scenario.fingerprints import fingerprint
from raysim.scenario.own_modules import MAIN, main_sources, own_modules, parts_in, places_of, root_of, sources_of
from raysim.scenario.schema import Scenario
from raysim.version import __version__

Dependencies = dict[str, Any]


def depends_on(scenario: Scenario) -> Dependencies:
    """Returns raysim's version, and fingerprints of own modules and of files by name; null if there is none.

    Reads all files that the parts name, which may take long.
    """
    of_run = scenario.run.model_copy(update={"log": (), "observers": ()})  # which change no results
    scenario = scenario.model_copy(update={"run": of_run})
    files = sorted({str(path) for part in parts_in(scenario) for path in part.reads()})
    return {
        "raysim": __version__,
        "modules": {module: _of_module(scenario, module) for module in own_modules(scenario)},
        "files": {path: fingerprint(path) for path in files},
    }


def own_code(scenario: Scenario) -> dict[str, str] | None:
    """Returns the state of each file that its own modules are made of, by path, and each module's folder, by name.

    Returns None if the files of a module are not known.
    """
    found = {}
    for module in own_modules(scenario):
        if not (sources := _sources(scenario, module)):
            return None
        found[module], places = str(root_of(module)), places_of(module)
        found |= {
            str(places.get(path, Path()) / path): hashlib.sha256(content).hexdigest()
            for path, content in sources.items()
        }
    return found


def _sources(scenario: Scenario, module: str) -> dict[Path, bytes]:
    return main_sources(scenario) if module == MAIN else sources_of(module)


def _of_module(scenario: Scenario, module: str) -> str | None:
    sources = _sources(scenario, module)
    return hash_of(sources) if sources else None


def hash_of(sources: dict[Path, bytes]) -> str:
    """Returns a hash of the files that a module is made of, as `sources_of` returns them."""
    hashed = hashlib.sha256()
    for path, content in sources.items():
        hashed.update(path.as_posix().encode() + b"\0" + hashlib.sha256(content).digest())
    return hashed.hexdigest()[:16]


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
