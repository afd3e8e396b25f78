"""The origin of a run, for run.json: its dependencies, copies of the user's own modules, the state of the git working
tree, and the machines and processes that it computes on."""

import builtins
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

from actors import Machine, Process
from actors.fault import is_installed
from raysim.parts.own import giving, import_errors
from raysim.parts.own_code import (
    MAIN,
    Sources,
    changed_since_imported,
    is_foreign,
    of_main,
    paths_in,
    root_of,
    sources_in,
    sources_of,
)
from raysim.scenario import Scenario
from raysim.scenario.dependencies import depends_on, hash_of
from results.disk import replacing
from results.location import local_copy

Kind: TypeAlias = Mapping[str, Any]  # of machine: an entry of the list `machines` of run.json
_log = logging.getLogger("raysim")
CODE = "code"  # name in the run's folder
PATIENCE_S = 10.0  # seconds that git may take


class Origin(NamedTuple):
    """What a run depends on beside its scenario, as the process knows it that was given the scenario."""

    info: dict[str, Any]  # what run.json says of it
    files: Sources  # those of the user's own modules

    @classmethod
    def known_for(cls, scenario: Scenario) -> "Origin":
        """Reads all files that the scenario depends on, which may take long."""
        files: Sources = {}
        for module, sources in sources_in(scenario).items():
            if (root := root_of(module)) is None or not is_installed(root):
                files |= sources
        text = "of a script or notebook, which cannot be imported elsewhere; put it into a module"
        main = sorted((one.__qualname__, "class" if isinstance(one, type) else "function") for one in of_main(scenario))
        notes = [f"{name} is a {kind} {text}" for name, kind in main]
        reload = "has changed since this process imported it, and runs as it was; reload it to use it"
        changed = [f"{file} {reload}" for file in changed_since_imported(files)]
        for note in changed:
            _log.warning(f"{scenario.name}: {note}")
        return cls({"depends_on": depends_on(scenario), "notes": [*notes, *changed]}, files)


def record_origin(origin: Origin, folder: Path) -> dict[str, Any]:
    """Copies the user's own modules into the run's folder, and returns what run.json says of the run's origin."""
    for path, source in origin.files.items():
        with replacing(folder / CODE / path) as copy:
            copy.write_bytes(source.content)
    own = {(source.root / path).resolve(): source.content for path, source in origin.files.items() if source.root}
    return origin.info | {"git": _working_tree(own)}


@contextmanager
def kept_code(folder: Path, info: dict[str, Any]) -> Iterator[None]:
    """Within the block, what the block `model` names is as it was when a run started.

    Where its modules have changed since, or cannot be found any more, the copies in the run's folder are loaded, and
    what these import of each other. Nothing else there is. info: the content of run.json.
    """
    modules = (info.get("depends_on") or {}).get("modules", {})
    named = {path: module for path, module in paths_in(info["scenario"].get("model")).items() if module in modules}
    stale = any(hash_of(sources_of(module)) != modules[module] for module in named.values() if module != MAIN)
    if not (stale and (folder / CODE).is_dir()):
        yield
        return
    with local_copy(folder / CODE) as code:
        package = _private(code.absolute())
        objects = {}
        for path, module in named.items():
            if module != MAIN and not is_foreign(module.partition(".")[0]):
                with import_errors(f"{path!r} cannot be imported from {folder / CODE}:"):
                    loaded = import_module(f"{package}.{module}")
                    objects[path] = attrgetter(path.partition(":")[2])(loaded)
        with giving(objects):
            yield


_PRIVATE = "_raysim_code_"  # with which names of packages begin that stand for folders of kept code


def _private(code: Path) -> str:
    """Returns the name of a package that holds the modules in a folder, whatever else has their names."""
    package = ModuleType(f"{_PRIVATE}{uuid4().hex}")
    package.__path__ = [str(code)]
    sys.modules[package.__name__] = package
    if _KeptFinder not in sys.meta_path:
        sys.meta_path.insert(0, _KeptFinder)
    return package.__name__


class _KeptFinder:
    """Finds modules in such packages, and nothing else. It stands among Python's finders."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name.startswith(_PRIVATE) and path else None
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _KeptLoader(spec.loader.name, spec.loader.path)
        return spec


class _KeptLoader(SourceFileLoader):
    """Loads a module that imports others of its folder from there, as it did when the run started."""

    def exec_module(self, module: ModuleType) -> None:
        package = module.__name__.partition(".")[0]
        (code,) = sys.modules[package].__path__

        def load(name: str, at: Any = None, inside: Any = None, names: Any = (), level: int = 0) -> Any:
            top = name.partition(".")[0]
            here = (Path(code, top) / "__init__.py", Path(code, f"{top}.py"))
            if level or is_foreign(top) or not any(file.is_file() for file in here):
                return __import__(name, at, inside, names, level)
            found = __import__(f"{package}.{name}", at, inside, names, 0)
            return found if names else getattr(found, top)

        vars(module)["__builtins__"] = {**vars(builtins), "__import__": load}
        super().exec_module(module)


def _working_tree(own: dict[Path, bytes]) -> dict[str, Any] | None:
    """Returns the commit in the current folder, and whether all own files are as committed; None if git knows of none.

    own: the files' contents by absolute path; other files, which may hold secrets, are not looked at. git only reads
    objects: to compare a working tree, it would run programs that the repository's settings name.
    """
    both = _git("rev-parse", "--show-toplevel", "HEAD")
    top, head = both.rstrip().rsplit(b"\n", 1) if both else (_git("rev-parse", "--show-toplevel"), None)
    if top is None:
        return None
    root = Path(os.fsdecode(top.rstrip(b"\n")))
    inside = {path.relative_to(root).as_posix(): content for path, content in own.items() if path.is_relative_to(root)}
    clean = all(_git("cat-file", "blob", f"HEAD:{name}") == content for name, content in inside.items())
    return {"commit": head and head.decode(), "clean": clean}


def _git(*words: str) -> bytes | None:
    """Returns what git answers; None if it is not installed, takes too long, or does not know."""
    environment = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        answer = subprocess.run(("git", *words), capture_output=True, timeout=PATIENCE_S, env=environment)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if answer.returncode else answer.stdout


def kinds_of(machines: Mapping[str, Machine]) -> list[dict[str, Any]]:
    """Returns run.json's list of the workers' machines: an entry for each kind of machine, with the names of its
    workers."""
    kinds: dict[Machine, list[str]] = {}
    for worker, machine in sorted(machines.items()):
        kinds.setdefault(machine, []).append(worker)
    return [{"workers": workers, **machine._asdict()} for machine, workers in kinds.items()]


def workers_of(processes: Mapping[str, Process]) -> list[dict[str, Any]]:
    """Returns run.json's list of the workers' processes: where each of them is."""
    return [{"worker": worker, **process._asdict()} for worker, process in processes.items()]


def what_differs(known: Sequence[Kind], found: Sequence[Kind]) -> tuple[str, bool] | None:
    """Returns how the machines of a run differ from each other, or from those before, in what last bits depend on, and
    whether run.json is to note it, because its list of machines does not show it; None if they do not differ.

    known, found: the kinds of machines in its record before, and now.
    """
    if not (changed := differences(known, found)):
        return None
    if different := differences(found, found):
        what = ", ".join(different)
        text = f"workers differ in what last bits depend on ({what}), so another run may give others"
        return text, False
    return f"continues with what may give other last bits ({', '.join(changed)})", True


def differences(one: Sequence[Kind], other: Sequence[Kind]) -> list[str]:
    """Returns the differences between the machines of two runs for which the same work may give other bits; empty if
    there are none.

    one, other: the values of `machines` in two run.json, or two parts of one run.json's. Only machines with workers of
    the same group are compared, because clients may be on GPUs and aggregators on CPUs.
    """
    pairs = [(_machine(mine), _machine(theirs)) for mine in one for theirs in other if _groups(mine) & _groups(theirs)]
    return list(dict.fromkeys(text for mine, theirs in pairs for text in mine.differences(theirs)))


def _groups(entry: Kind) -> set[str]:
    """Returns the groups of the workers on a kind of machine. Inline, a worker has the name of its group."""
    return {worker.partition("-")[0] for worker in entry["workers"]}


def _machine(entry: Kind) -> Machine:
    return Machine(*(entry.get(name) for name in Machine._fields))  # type: ignore[arg-type]  # read from JSON
