"""Prints what runs log, which is where they write, and warnings."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape


@contextmanager
def telling(console: Console) -> Iterator[None]:
    """Within the block, what runs log is printed: information to the console, and warnings to standard error."""
    log, printing = logging.getLogger("raysim"), _Printing(console)
    before = log.level
    log.addHandler(printing)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(printing)


class _Printing(logging.Handler):
    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            print(record.getMessage(), file=sys.stderr)
        else:
            self._console.print(escape(record.getMessage()), soft_wrap=True, highlight=False)
