"""How Ctrl-C ends a program that still imports raysim: with one line, for nothing has begun that could be lost."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType


@contextmanager
def told_in_a_line() -> Iterator[None]:
    """A KeyboardInterrupt of the block that nobody catches ends the program with one line and without a traceback."""
    try:
        yield
    except KeyboardInterrupt as error:
        pressed, before = error, sys.excepthook

        def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            if error is pressed:
                print("interrupted before anything began", file=sys.stderr)
            else:
                before(kind, error, trace)

        sys.excepthook = tell
        raise
