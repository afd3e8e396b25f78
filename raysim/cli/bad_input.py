"""Bad input: what is wrong goes to standard error, and the exit code is 2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer


def refuse(errors: Sequence[Exception]) -> None:
    """Prints the errors and ends the command with exit code 2; without any, does nothing."""
    for error in errors:
        typer.echo(str(error), err=True)
    if errors:
        raise typer.Exit(2)


@contextmanager
def refusing_wrong_runs() -> Iterator[None]:
    """Ends the command with exit code 2 where the block finds no runs, or runs that cannot be compared."""
    from results import NotARun, NotComparable, UnknownKey

    try:
        yield
    except (NotARun, NotComparable, UnknownKey) as error:
        refuse([error])
