"""Finds the runs in folders, and opens them or looks at them."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from results.info import NotARun, Status
from results.location import location, reaching, why
from results.reader import NoRuns, Run
from results.run_set import READERS
from results.runs import Runs
from results.views import View, view

_FIRST = "give another one, or make a first run with `raysim run`"


def load(*paths: str | os.PathLike[str]) -> Runs:
    """Loads the runs in these folders. Each folder is a run's own, or holds runs' folders at any depth.

    paths: the folders, or their URIs.

    Raises NoRuns, a NotARun, where a folder holds no run, and NotARun, with a line for each run whose run.json is
    damaged, or where two runs have the same id.
    """
    folders = [folder for path in paths for folder in folders_below(location(path))]
    unique = list({folder.resolve(): folder for folder in folders}.values())
    with ThreadPoolExecutor(READERS) as readers:
        found = list(readers.map(_opened, unique))
    runs = [item for item in found if isinstance(item, Run)]
    wrong = [item for item in found if isinstance(item, NotARun)]
    if wrong:
        raise NotARun("\n".join(map(str, wrong)))
    return Runs(runs)


def _opened(folder: Path) -> Run | NotARun:
    run = Run(folder)
    try:
        run.info  # noqa: B018 - reading it checks it
    except NotARun as error:
        return error
    return run


def folders_below(path: Path) -> list[Path]:
    """Returns the folders of runs that are in a folder, in order of their paths, or are that folder.

    Raises NoRuns where there is none, and NotARun where they cannot be listed.
    """
    try:
        with reaching():
            there = path.is_dir()
            alone = (path / "run.json").exists()
            found = [path] if alone else sorted(file.parent for file in path.rglob("run.json")) if there else []
    except OSError as error:
        raise NotARun(f"{path}: must be a folder of runs, which cannot be read ({why(error)})") from error
    if not there:
        raise NoRuns(f"{path}: must be a folder of runs, but there is none; {_FIRST}")
    if not found:
        raise NoRuns(f"{path}: must be a run's folder, with run.json in it, or hold such folders; got none; {_FIRST}")
    return found


def newest(name: Path, *, begins: bool = False) -> Path:
    """Returns the folder of the newest run of a name, such as runs/quickstart.

    name: below a folder that holds the run at any depth; without one, below runs/. A folder that is there is returned
    as it is, and so is a name that no run has. begins: whether the folder's name may be one that only begins so. Raises
    NotARun where runs of several names do.
    """
    places = [name] if name.is_absolute() or len(name.parts) > 1 else [name, Path("runs") / name]
    if there := [place for place in places if place.exists()]:
        return there[0]
    files = places[-1].parent.rglob("run.json")
    found = [_opened(file.parent) for file in files if file.parent.name.startswith(name.name)]
    runs = [run for run in found if isinstance(run, Run)]
    runs = [run for run in runs if run.info.get("name") == name.name] or (runs if begins else [])
    if len(names := sorted({str(run.info.get("name")) for run in runs})) > 1:
        text = f"must be the beginning of one run's name, got that of {', '.join(names)}"
        raise NotARun(f"{name}: {text}; write more of it")
    return max(runs, key=lambda run: (run.info.get("started_at") or "", run.folder.name)).folder if runs else name


class Folder:
    """A folder of runs that is looked at, perhaps again and again. Runs that are over are read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._over: dict[Path, tuple[tuple[float, int], View]] = {}  # by time and size of run.json

    def look(self) -> list[View]:
        """Returns the runs in the folder, in order of their paths. Raises NoRuns where there is none."""
        with ThreadPoolExecutor(READERS) as readers:
            found = list(readers.map(self._view, folders_below(self.folder)))
        first: dict[str, str] = {}  # by id, the path of the run that has it
        views = []
        for one in found:
            if one.run and (other := first.setdefault(one.run.id, one.path)) != one.path:
                one = View(one.path, Status.COPY, f"holds the run {one.run.id}, which {other} holds too")
            views.append(one)
        return views

    def _view(self, folder: Path) -> View:
        path = "/".join(folder.relative_to(self.folder).parts) or "."
        try:
            with reaching():
                stat = (folder / "run.json").stat()
        except OSError as error:
            return View(path, Status.DAMAGED, str(error))
        version, before = (stat.st_mtime, stat.st_size), self._over.get(folder)
        if before and before[0] == version:
            return before[1]
        found = view(Run(folder), path)
        if found.readable and not found.status.goes_on:
            self._over[folder] = version, found
        return found


def readable(views: Iterable[View]) -> list[View]:
    """Returns the views of runs that can be read. Raises NotARun, which says what is damaged, where there is none."""
    every = list(views)
    if found := [one for one in every if one.readable]:
        return found
    raise NotARun("\n".join(f"{one.path}: {one.why}" for one in every))
