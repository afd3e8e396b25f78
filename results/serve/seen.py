"""What a folder of runs holds at a moment, damaged runs among it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from results.glance import Glance, glance
from results.keys import Value
from results.load import runs_below
from results.reader import NotARun, Run
from results.run_set import READERS
from results.store import reaching

Version = tuple[float, int]  # of run.json: when it was written, and how long it is


@dataclass(frozen=True)
class Seen:
    """A run as it was at a look."""

    path: str
    """Below the folder that is served. It is the run's name here, for nothing else is one of every folder."""
    run: Run | None
    """None where run.json cannot be read."""
    glance: Glance | None
    wrong: str | None = None
    """What is wrong with its files, if anything is."""
    copy: bool = False
    """Whether another folder holds a run with its id, so that the two cannot be told apart."""

    @property
    def standing(self) -> str:
        return self.glance.standing if self.glance else "copy" if self.copy else "damaged"

    @property
    def remark(self) -> str:
        """Why it ended, what it waits for, or what is wrong with it."""
        return self.wrong or (self.glance.waiting if self.glance else "")

    @cached_property
    def keys(self) -> dict[str, Value]:
        """The values of its scenario by dotted path; none where run.json cannot be read."""
        return self.run.keys if self.run else {}


class Watched:
    """A folder of runs that is looked at again and again. Runs that are over are read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._over: dict[Path, tuple[Version, Seen]] = {}

    def look(self) -> list[Seen]:
        """Returns the runs in the folder, in order of their paths. Links in it are not followed."""
        with reaching(self.folder):
            folders = runs_below(self.folder) or []
        with ThreadPoolExecutor(READERS) as readers:
            found = list(readers.map(self._seen, folders))
        return _once(found)

    def _seen(self, folder: Path) -> Seen:
        path = "/".join(folder.relative_to(self.folder).parts) or "."
        run = None
        try:
            with reaching(folder):
                stat = (folder / "run.json").stat()
            version = stat.st_mtime, stat.st_size
            before = self._over.get(folder)
            if before and before[0] == version:
                return before[1]
            opened = Run(folder)
            opened.info  # noqa: B018 - reading it checks it
            run = opened
            seen = Seen(path, run, glance(run))
        except (NotARun, OSError) as error:
            return Seen(path, run, None, str(error))
        if seen.glance and not seen.glance.goes_on:
            self._over[folder] = version, seen
        return seen


def _once(found: list[Seen]) -> list[Seen]:
    """Marks each run whose id one before it has."""
    first: dict[str, str] = {}
    told = []
    for seen in found:
        other = first.setdefault(seen.run.id, seen.path) if seen.run else seen.path
        same = f"holds the run {seen.run.id}, which {other} holds too" if seen.run and other != seen.path else None
        told.append(Seen(seen.path, None, None, same, copy=True) if same else seen)
    return told
