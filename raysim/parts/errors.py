"""The exceptions that users meet.

RaysimError
├── ScenarioError    the scenario file is wrong; nothing was started (exit code 2)
├── BadInput         something that the scenario names, such as a file, is missing, damaged or does not fit
│                    (a BadValue, which parts raise, with the path of the part)
├── CannotGoOn       a run cannot be resumed or forked; nothing was started (exit code 2)
│   └── DamagedCheckpoint
├── RunFailed        a run stopped half-way; its tables stay readable (exit code 1)
└── StopRun          an observer raises it to end the run
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from actors.fault import UserError
from results.texts import cut
from results.texts import quoted as quoted

_PATH = 200  # letters of a path
_SHOWN = 2000  # letters of a problem
_PROBLEMS = 50  # that the text of an error lists


class RaysimError(Exception):
    """The base of the exceptions below."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a scenario."""

    path: str  # path of the key, such as algorithm.buffer; empty for the file as a whole
    text: str  # what must hold, what was got, what to do

    def __str__(self) -> str:
        path, text = cut(self.path, _PATH), cut(self.text, _SHOWN)
        return f"{path}: {text}" if path else text


class ScenarioError(RaysimError):
    """A scenario is wrong; `problems` has everything that is wrong with it."""

    def __init__(self, source: str, problems: list[Problem]) -> None:
        super().__init__(source, problems)
        self.source, self.problems = source, problems

    def __str__(self) -> str:
        lines = [f"{self.source}: {problem}" for problem in self.problems[:_PROBLEMS]]
        if more := len(self.problems) - len(lines):
            lines.append(f"{self.source}: and {more} more problems")
        return "\n".join(lines)


class BadInput(RaysimError, UserError, ValueError):
    """Something that a scenario names is missing, damaged or does not fit; `problem` says at which key, and what."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(path, text)
        self.problem = Problem(path, text)

    def __str__(self) -> str:
        return str(self.problem)


class BadValue(UserError, ValueError):
    """A value that a part of the scenario cannot work with. Code of parts raises it; `located` says whose it is.

    text: what must hold, what was got, what to do; key: the key of the part that it is about, or empty.
    """

    def __init__(self, text: str, key: str = "") -> None:
        super().__init__(text, key)
        self.text, self.key = text, key

    def __str__(self) -> str:
        return f"`{self.key}` {self.text}" if self.key else self.text


class MissingFile(BadValue, FileNotFoundError):
    """A file or folder that a part needs is not on this machine."""


@contextmanager
def located(path: str) -> Iterator[None]:
    """Turns what the part at a path of the scenario refuses, and files that cannot be opened, into BadInput.

    All other errors pass as they are: they may be faults of a user's code, and then the traceback is what helps.
    """
    try:
        yield
    except BadInput:  # which says where
        raise
    except BadValue as error:
        raise BadInput(f"{path}.{error.key}" if error.key else path, error.text) from error
    except OSError as error:
        if error.filename is None:
            raise
        raise BadInput(path, f"{error.filename!r} cannot be read: {error.strerror}") from error


class CannotGoOn(RaysimError):
    """A run cannot be resumed or forked, for a reason that its text gives."""


class DamagedCheckpoint(CannotGoOn):
    """A file of a run's checkpoint is missing or was changed."""


class RunFailed(RaysimError):
    """A run stopped half-way.

    where: the job that failed; traceback: the text of the worker's traceback; folder: the run's folder.
    """

    def __init__(self, where: str, cause: str, traceback: str = "", folder: Path | None = None) -> None:
        super().__init__(where, cause, traceback, folder)
        self.where, self.cause, self.traceback, self.folder = where, cause, traceback, folder

    def __str__(self) -> str:
        return f"{self.where}: {self.cause}"


class StopRun(RaysimError):
    """Ends a run early, when an observer raises it. Its text says why, for run.json."""


def nearest(word: Any, options: Iterable[str]) -> str:
    """Returns a question that suggests the option most like a word; empty if none is like it.

    Only letters and digits are compared, in lower case, so that names are found as papers write them: FedADMM-InSa is
    fedadmm_insa.
    """
    by_letters = {_letters(option): option for option in options}
    close = get_close_matches(_letters(str(word)), by_letters, n=1, cutoff=0.5)
    return f" (did you mean {by_letters[close[0]]!r}?)" if close else ""


def _letters(word: str) -> str:
    return "".join(filter(str.isalnum, word.lower()))
