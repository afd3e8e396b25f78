"""How commands end: with exit code 2 for bad input, which is told on standard error, or by a signal, as Ctrl-C does it,
with all rows written and run.json true."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import typer

from actors.interrupt import ask
from raysim.parts.errors import RunFailed
from results import NotARun, NotComparable, UnknownKey
from results.texts import harmless


def refuse(*errors: Exception | str) -> NoReturn:
    """Prints what is wrong and ends the command with exit code 2."""
    for error in errors:
        typer.echo(harmless(str(error)), err=True)
    raise typer.Exit(2)


def tell(error: RunFailed) -> None:
    """Prints why a run failed, with the traceback of what went wrong."""
    typer.echo(harmless(f"{error.traceback.rstrip()}\n\nThe run failed in {error}".lstrip()), err=True)


@contextmanager
def refusing_wrong_runs(*further: type[Exception]) -> Iterator[list[str]]:
    """Ends the command with exit code 2 if the block finds no runs, or runs that cannot be compared.

    Yields a list for notes on runs that are left out. They are printed after the block.
    further: what else says in one line that the runs are wrong.
    """
    notes: list[str] = []
    try:
        yield notes
    except (NotARun, NotComparable, UnknownKey, *further) as error:  # type: ignore[misc]  # mypy knows no such tuple
        refuse(error)
    for note in notes:
        typer.echo(harmless(note), err=True)


# --- signals ----------------------------------------------------------------------------------------------------------

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C, a batch system, a lost terminal


@contextmanager
def ending_by_signals() -> Iterator[None]:
    """Within the block, a signal of ENDING ends the command; the exit code is then 128 plus the signal's number.

    A second signal ends the process at once. A signal that is ignored, as SIGHUP is below nohup, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():  # Python lets no other thread handle signals
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    received = []

    def end(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for other in ENDING:
            signal.signal(other, signal.SIG_DFL)
        ask()

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, end)
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(128 + (received or [signal.SIGINT])[0]) from None
    finally:
        if not received:
            for number, handler in before.items():
                signal.signal(number, handler)
