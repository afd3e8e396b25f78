"""Says what went wrong on standard error. Commands that get bad input end with exit code 2."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from actors import MissingResources
from raysim.parts.errors import RunFailed, ScenarioError
from results import NotARun, NotComparable, UnknownKey
from results.disk import CannotWrite
from results.texts import harmless


def refuse(*errors: Exception | str) -> NoReturn:
    """Prints what is wrong and ends the command with exit code 2."""
    for error in errors:
        typer.echo(harmless(str(error)), err=True)
    raise typer.Exit(2)


def tell(error: Exception) -> None:
    """Prints why a run failed: the traceback of what went wrong, if that was in raysim or in a user's own code."""
    if isinstance(error, RunFailed):
        text = f"{error.traceback.rstrip()}\n\nThe run failed in {error}".lstrip()
    elif isinstance(error, CannotWrite | MissingResources | ScenarioError):
        text = str(error)
    else:
        text = "".join(traceback.format_exception(error)).rstrip()
    typer.echo(harmless(text), err=True)


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
