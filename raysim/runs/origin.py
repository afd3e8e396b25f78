"""The origin of a run: its dependencies, copies of the user's own modules, and the state of the git working tree."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from raysim.scenario import Scenario
from raysim.scenario.dependencies import depends_on, hash_of
from raysim.scenario.own_modules import (
    MAIN,
    is_installed,
    main_objects,
    main_sources,
    own_modules,
    parts_in,
    root_of,
    sources_of,
)
from results.store import local_copy, make_folder

CODE = "code"  # the folder of copies, in the run's folder
LARGEST_DIFF = 2**20  # bytes
PATIENCE_S = 10.0  # seconds that git may take


def record_origin(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """Copies the user's own modules into the run's folder, and returns what run.json says of the run's origin."""
    for module in own_modules(scenario):
        root = root_of(module)
        if root is None or not is_installed(root):
            sources = main_sources(scenario) if module == MAIN else sources_of(module)
            for path, content in sources.items():
                copy = folder / CODE / path
                make_folder(copy.parent, parents=True)
                copy.write_bytes(content)
    of_main = {type(part).__qualname__: type(part) for part in parts_in(scenario) if type(part).__module__ == MAIN}
    text = "of a script or notebook, which cannot be imported elsewhere; put it into a module"
    named = sorted({**of_main, **main_objects(scenario)}.items())
    return {
        "depends_on": depends_on(scenario),
        "notes": [f"{name} is a {'class' if isinstance(one, type) else 'function'} {text}" for name, one in named],
        "git": _working_tree(folder),
    }


@contextmanager
def own_code(folder: Path, info: dict[str, Any]) -> Iterator[None]:
    """Within the block, modules of the user's own are imported as they were when a run started.

    Where they have changed since, or cannot be found any more, the copies in the run's folder are imported. info: the
    content of run.json.
    """
    modules = (info.get("depends_on") or {}).get("modules", {})
    stale = any(module != MAIN and hash_of(sources_of(module)) != known for module, known in modules.items())
    if not (stale and (folder / CODE).is_dir()):
        yield
        return
    with local_copy(folder / CODE) as code, _imported_from(code.absolute()):
        yield


@contextmanager
def _imported_from(code: Path) -> Iterator[None]:
    """Within the block, the modules in a folder are imported in place of others of their names."""
    copied = {path.stem for path in code.iterdir()}
    before = _take_out(copied)
    sys.path.insert(0, str(code))
    try:
        yield
    finally:
        sys.path.remove(str(code))
        _take_out(copied)
        sys.modules.update(before)


def _take_out(names: set[str]) -> dict[str, Any]:
    """Takes modules of these names, and those in them, out of the modules that count as imported. Returns them."""
    found = [name for name in sys.modules if name != MAIN and name.partition(".")[0] in names]
    return {name: sys.modules.pop(name) for name in found}


def _working_tree(folder: Path) -> dict[str, Any] | None:
    """Returns the commit in the current folder, and whether all is committed; None if git knows of none.

    What is not committed is written into the run's folder, unless it is large.
    """
    status = _git("status", "--porcelain=v2", "--branch", "--untracked-files=no")
    if status is None:
        return None
    lines = status.decode(errors="replace").splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), None)
    clean = all(line.startswith("#") for line in lines)
    diff = None if clean else _git("diff", "HEAD")
    if diff and len(diff) <= LARGEST_DIFF:
        (folder / "working_tree.diff").write_bytes(diff)
    return {"commit": commit, "clean": clean}


def _git(*words: str) -> bytes | None:
    """Returns what git answers; None if it is not installed, takes too long, or is not in a working tree."""
    try:
        answer = subprocess.run(("git", *words), capture_output=True, timeout=PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if answer.returncode else answer.stdout
