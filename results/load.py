"""Finds the runs in folders, and opens them or looks at them."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from results.info import NotARun, Status
from results.location import location, reaching, why
from results.reader import NoRuns, Run, opened
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
        found = list(readers.map(opened, unique))
    runs = [item for item in found if isinstance(item, Run)]
    wrong = [item for item in found if isinstance(item, NotARun)]
    if wrong:
        raise NotARun("\n".join(map(str, wrong)))
    return Runs(runs)


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
