"""The origin of a run: its dependencies, copies of the user's own modules, and the state of the git working tree."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import unified_diff
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from raysim.scenario import Scenario
from raysim.scenario.dependencies import depends_on, hash_of
from raysim.scenario.own_modules import (
    MAIN,
    files_of,
    is_foreign,
    is_installed,
    main_objects,
    modules_named,
    parts_in,
    root_of,
    sources_in,
    sources_of,
)
from results.store import local_copy, make_folder

CODE, DIFF = "code", "working_tree.diff"  # names in the run's folder
LARGEST_DIFF = 2**20  # bytes
PATIENCE_S = 10.0  # seconds that git may take


def record_origin(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """Copies the user's own modules into the run's folder, and returns what run.json says of the run's origin."""
    own: dict[Path, bytes] = {}
    for module, sources in sources_in(scenario).items():
        root = root_of(module)
        if root is None or not is_installed(root):
            own |= {(source.root / path).resolve(): source.content for path, source in sources.items() if source.root}
            for path, source in sources.items():
                copy = folder / CODE / path
                make_folder(copy.parent, parents=True)
                copy.write_bytes(source.content)
    of_main = {type(part).__qualname__: type(part) for part in parts_in(scenario) if type(part).__module__ == MAIN}
    text = "of a script or notebook, which cannot be imported elsewhere; put it into a module"
    named = sorted({**of_main, **main_objects(scenario)}.items())
    return {
        "depends_on": depends_on(scenario),
        "notes": [f"{name} is a {'class' if isinstance(one, type) else 'function'} {text}" for name, one in named],
        "git": _working_tree(folder, own),
    }


@contextmanager
def own_code(folder: Path, info: dict[str, Any]) -> Iterator[None]:
    """Within the block, the modules that the model needs are imported as they were when a run started.

    Where they have changed since, or cannot be found any more, the copies in the run's folder are imported: of modules
    that the block `model` names, and of what these import. Nothing else there is. info: the content of run.json.
    """
    modules = (info.get("depends_on") or {}).get("modules", {})
    named = modules_named(info["scenario"].get("model")) & modules.keys() - {MAIN}
    stale = any(hash_of(sources_of(module)) != modules[module] for module in named)
    if not (stale and (folder / CODE).is_dir()):
        yield
        return
    with local_copy(folder / CODE) as code:
        names = {path.parts[0].removesuffix(".py") for module in named for path in files_of(module, code)}
        with _imported_from(code.absolute(), {name for name in names if not is_foreign(name)}):
            yield


class _Copies:
    """Finds modules of some names in a folder. It stands among Python's finders."""

    def __init__(self, folder: Path, names: set[str]) -> None:
        self._folder, self._names = str(folder), names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return PathFinder.find_spec(name, [self._folder]) if path is None and name in self._names else None


@contextmanager
def _imported_from(code: Path, names: set[str]) -> Iterator[None]:
    """Within the block, modules of these names in a folder are imported in place of others."""
    before, copies = _take_out(names), _Copies(code, names)
    sys.meta_path.insert(0, copies)
    try:
        yield
    finally:
        sys.meta_path.remove(copies)
        _take_out(names)
        sys.modules.update(before)


def _take_out(names: set[str]) -> dict[str, Any]:
    """Takes modules of these names, and those in them, out of the modules that count as imported. Returns them."""
    found = [name for name in sys.modules if name != MAIN and name.partition(".")[0] in names]
    return {name: sys.modules.pop(name) for name in found}


def _working_tree(folder: Path, own: dict[Path, bytes]) -> dict[str, Any] | None:
    """Returns the commit in the current folder, and whether all own files are as committed; None if git knows of none.

    How they differ is written into the run's folder, unless that is long. own: the files' contents by absolute path;
    other files, which may hold secrets, are not looked at. git only reads objects: to compare a working tree, it would
    run programs that the repository's settings name.
    """
    both = _git("rev-parse", "--show-toplevel", "HEAD")
    top, head = both.rstrip().rsplit(b"\n", 1) if both else (_git("rev-parse", "--show-toplevel"), None)
    if top is None:
        return None
    root, lines = Path(os.fsdecode(top.rstrip(b"\n"))), list[str]()
    for path, content in own.items():
        if path.is_relative_to(root):
            name = path.relative_to(root).as_posix()
            texts = [(_git("cat-file", "blob", f"HEAD:{name}") or b""), content]
            before, now = (text.decode(errors="replace").splitlines(keepends=True) for text in texts)
            lines += unified_diff(before, now, f"a/{name}", f"b/{name}")
    diff = "".join(lines)
    (folder / DIFF).unlink(missing_ok=True)  # that of a run that goes on
    if 0 < len(diff) <= LARGEST_DIFF:
        (folder / DIFF).write_text(diff, encoding="utf-8")
    return {"commit": head and head.decode(), "clean": not diff}


def _git(*words: str) -> bytes | None:
    """Returns what git answers; None if it is not installed, takes too long, or does not know."""
    environment = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        answer = subprocess.run(("git", *words), capture_output=True, timeout=PATIENCE_S, env=environment)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if answer.returncode else answer.stdout
