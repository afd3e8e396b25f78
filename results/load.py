"""Finds the runs in folders, and opens them."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from results.location import location
from results.reader import NoRuns, NotARun, Run
from results.run_set import READERS
from results.runs import Runs
from results.store import reaching, why

_FIRST = "give another one, or make a first run with `raysim run`"


def load(*paths: str | os.PathLike[str], damaged: list[str] | None = None) -> Runs:
    """Loads the runs in these folders. Each folder is a run's own, or holds runs' folders at any depth.

    paths: the folders, or their URIs.
    damaged: where it is given, a run whose run.json is damaged is left out, unless it is the only one, and a line that
    says why is added here.

    Raises NoRuns, a NotARun, where a folder holds no run, and NotARun where a run.json is damaged, or where
    two runs have the same id.
    """
    folders = [folder for path in paths for folder in _folders(location(path))]
    unique = list({folder.resolve(): folder for folder in folders}.values())
    with ThreadPoolExecutor(READERS) as readers:
        found = list(readers.map(_opened, unique))
    runs = [item for item in found if isinstance(item, Run)]
    wrong = [item for item in found if isinstance(item, NotARun)]
    if wrong and (damaged is None or not runs):
        raise NotARun("\n".join(map(str, wrong)))
    if damaged is not None:
        damaged += [f"{error}; left out" for error in wrong]
    return Runs(runs)


def _opened(folder: Path) -> Run | NotARun:
    run = Run(folder)
    try:
        run.info  # noqa: B018 - reading it checks it
    except NotARun as error:
        return error
    return run


def _folders(path: Path) -> list[Path]:
    try:
        with reaching(path):
            found = runs_below(path)
    except OSError as error:
        raise NotARun(f"{path}: must be a folder of runs, which cannot be read ({why(error)})") from error
    if found is None:
        raise NoRuns(f"{path}: must be a folder of runs, but there is none; {_FIRST}")
    if not found:
        raise NoRuns(f"{path}: must be a run's folder, with run.json in it, or hold such folders; got none; {_FIRST}")
    return found


def runs_below(path: Path) -> list[Path] | None:
    """Returns the folders of runs that are in a folder, or are that folder; None if there is no such folder."""
    if not path.is_dir():
        return None
    if (path / "run.json").exists():
        return [path]
    return sorted(file.parent for file in path.rglob("run.json"))
