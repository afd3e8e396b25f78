"""How errors of hosted code are shown: their text, where in users' own code they arose, and whether memory ran out."""

import sysconfig
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType
from typing import Literal, NamedTuple

OURS = {"actors", "raysim", "results"}
_INSTALLED = {sysconfig.get_path(kind) for kind in ("purelib", "platlib", "stdlib", "platstdlib")}


class UserError(Exception):
    """An error of a job whose text is all that users need. It is shown without its class and without a traceback."""


@cache
def is_installed(folder: Path) -> bool:
    """Whether the modules in a folder are those of installed packages, or of Python itself."""
    named = str(folder) in _INSTALLED or folder.name in ("site-packages", "dist-packages")
    return named or any(folder.glob("*.dist-info"))  # as `pip install --target` leaves them


class Frame(NamedTuple):
    """A call in a user's own code, on the way to an error."""

    function: str  # module:function, or module:Class.method
    place: str  # file:line


def describe(error: BaseException) -> str:
    """Returns an error as one line: its class, its text, and the notes that were added to it."""
    text = _text(error) if isinstance(error, UserError) else f"{type(error).__name__}: {_text(error)}"
    return " - ".join([text, *getattr(error, "__notes__", [])])


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as another:  # a user's class may make it
        return f"(its text cannot be made: {type(another).__name__})"


def trace(error: BaseException) -> str:
    """Returns the text of an error's traceback: if there are calls in code of users' own, from the first of them, and
    without our packages' calls. It is empty if the error's own text says all.
    """
    if isinstance(error, UserError):
        return ""
    if first := next(_own(error), None):
        shown = traceback.TracebackException(type(error), error, first)
        steps = zip(shown.stack, traceback.walk_tb(first), strict=True)
        shown.stack[:] = [step for step, (frame, _) in steps if not _is_ours(frame)]
        return "".join(shown.format())
    return "".join(traceback.format_exception(error))


def frames_of(error: BaseException) -> tuple[Frame, ...]:
    """Returns the calls in the user's own code that led to an error, outermost first."""
    codes = ((step.tb_frame.f_globals.get("__name__"), step.tb_frame.f_code, step.tb_lineno) for step in _own(error))
    return tuple(Frame(f"{module}:{code.co_qualname}", f"{code.co_filename}:{line}") for module, code, line in codes)


def _own(error: BaseException) -> Iterator[TracebackType]:
    """Yields the steps of a traceback that are neither in our packages nor in installed ones."""
    if isinstance(error.__cause__, StopIteration):  # Python puts a RuntimeError in its place where it ends a generator
        error = error.__cause__
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not _is_ours(step.tb_frame) and file[:1] != "<" and not any(map(is_installed, Path(file).parents)):
            yield step
        step = step.tb_next


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in OURS


Memory = Literal["gpu", "node"]


def exhausted(error: BaseException) -> Memory | None:
    """Returns whether an error says that the memory of a GPU or of the node ran out; None if it says neither."""
    if type(error).__name__ == "OutOfMemoryError":  # torch's, which may not be loaded here
        return "gpu"
    return "node" if isinstance(error, MemoryError) else None
