"""What an interruption leaves: the result of the run so far."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from typing import ParamSpec

from raysim.runs.result import Result

Arguments = ParamSpec("Arguments")
_log = logging.getLogger("raysim")


class Interrupted(KeyboardInterrupt):
    """A run was interrupted, as by Ctrl-C. result: what there is of it; `raysim.resume` goes on with it."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"{result.folder} was interrupted")
        self.result = result

    def __reduce__(self) -> tuple[type[Interrupted], tuple[Result]]:
        return Interrupted, (self.result,)


def interactive() -> bool:
    """Tells whether somebody types the program's statements one by one: in a notebook, IPython or Python's prompt."""
    ipython = sys.modules.get("IPython")
    return hasattr(sys, "ps1") or (ipython is not None and ipython.get_ipython() is not None)


def leaving_result(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Lets a function return the result of an interrupted run where somebody is there to look at it. Elsewhere, the
    interruption ends the program as any other does."""

    @functools.wraps(function)
    def call(*args: Arguments.args, **keys: Arguments.kwargs) -> Result:
        try:
            return function(*args, **keys)
        except Interrupted as stop:
            if not interactive():
                raise
            _log.warning(f"the run was interrupted; raysim.resume({str(stop.result.folder)!r}) goes on with it")
            return stop.result

    return call
