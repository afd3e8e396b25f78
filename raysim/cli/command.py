"""What commands share: arguments and options; and how commands end: with exit code 2 for bad input, which is told on
standard error, or by a signal, as Ctrl-C does it, with all rows written and run.json true."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from actors.process import ask
from raysim.parts.errors import RunFailed
from raysim.runs.place import RunPlace
from results import NotARun, NotComparable, UnknownKey
from results.disk import CannotWrite, require_folder
from results.location import UnknownLocation, is_local, location
from results.reader import newest
from results.texts import harmless

ScenarioFiles = Annotated[list[Path], typer.Argument(help="Scenario files (YAML).", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY.PATH=VALUE", help="Replace a key of the scenario; can be repeated."),
]
Case = Annotated[str | None, typer.Option(help="Take this case of the file's sweep, without its grid and its search.")]
Inline = Annotated[bool, typer.Option("--inline", help="Run in this process, without Ray; the numbers are the same.")]
Address = Annotated[
    str | None,
    typer.Option(
        help="Ray cluster, such as auto or host:port; local: a new Ray with its dashboard. By default RAY_ADDRESS, or "
        "else a new Ray without one."
    ),
]
Local = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        show_default=False,
        help="Run in N worker processes of this machine, without Ray; the numbers are the same.",
    ),
]


def place_of(inline: bool, local: int | None, address: str | None) -> RunPlace:
    """Returns the place that options name. Ends the command with exit code 2 if they name several."""
    try:
        return RunPlace(inline, local, address)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def to_location(text: str) -> Path:
    """Returns the place that an argument names: a path, or a URI such as s3://bucket/runs."""
    try:
        return location(text)
    except UnknownLocation as error:
        raise typer.BadParameter(str(error)) from error


def _newest(text: str) -> Path:
    """Returns the run's folder that an argument names, and says which where it names the newest of several."""
    place = to_location(text)
    try:
        found = newest(place, begins=True) if is_local(place) else place
    except NotARun as error:
        raise typer.BadParameter(str(error)) from error
    if found != place:
        typer.echo(f"{found} is the newest run of {place.name}", err=True)
    return found


def _out(path: Path) -> Path:
    try:
        require_folder(path)
    except CannotWrite as error:
        raise typer.BadParameter(str(error)) from error
    return path


Out = Annotated[
    Path,
    typer.Option(
        help="Folder for results, or its URI, such as s3://bucket/runs; must be absolute in a job on a cluster.",
        callback=_out,
        parser=to_location,
        metavar="PATH",
    ),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY",
        help="Make a line, or a row, for each value of a key; by default of all keys that differ but seed. "
        "Can be repeated.",
    ),
]
Split = Annotated[str, typer.Option(help="test, train or validation.")]
RunFolder = Annotated[
    Path,
    typer.Argument(
        help="A run's folder, or its URI; or a name, such as quickstart, or the beginning of one, for its newest run.",
        parser=_newest,
        show_default=False,
    ),
]
RunFolders = Annotated[
    list[Path],
    typer.Argument(
        help="Folders of runs, or folders that hold them; also URIs.", parser=to_location, show_default=False
    ),
]
FolderOfRuns = Annotated[
    Path, typer.Argument(help="A folder of runs, or its URI.", parser=to_location, show_default=False)
]


# --- how commands end -------------------------------------------------------------------------------------------------


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
