"""Ends commands that get bad input: they print what is wrong to standard error, with exit code 2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer


def refuse(errors: Sequence[Exception]) -> None:
    """Prints the errors and ends the command with exit code 2. Does nothing if there are no errors."""
    for error in errors:
        typer.echo(str(error), err=True)
    if errors:
        raise typer.Exit(2)


@contextmanager
def refusing_wrong_runs() -> Iterator[None]:
    """Ends the command with exit code 2 if the block finds no runs, or runs that cannot be compared."""
    from results import NotARun, NotComparable, UnknownKey

    try:
        yield
    except (NotARun, NotComparable, UnknownKey) as error:
        refuse([error])
