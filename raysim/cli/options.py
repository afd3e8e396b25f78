"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from raysim.runs.place import RunPlace
from results import NotARun
from results.disk import CannotWrite, require_folder
from results.load import newest
from results.location import UnknownLocation, is_local, location

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
