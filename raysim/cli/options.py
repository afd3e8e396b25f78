"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from results.location import UnknownLocation, location

ScenarioFiles = Annotated[list[Path], typer.Argument(help="Scenario files (YAML).", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY.PATH=VALUE", help="Replace a key of the scenario; can be repeated."),
]
Address = Annotated[
    str | None,
    typer.Option(help="Ray cluster, such as auto or host:port; by default RAY_ADDRESS, or else a new local Ray."),
]


def to_location(text: str) -> Path:
    """Returns the place that an argument names: a path, or a URI such as s3://bucket/runs."""
    try:
        return location(text)
    except UnknownLocation as error:
        raise typer.BadParameter(str(error)) from error


def _out(path: Path) -> Path:
    from results.disk import CannotWrite, require_folder

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
RunFolder = Annotated[
    Path, typer.Argument(help="A run's folder, or its URI.", parser=to_location, metavar="PATH", show_default=False)
]
RunFolders = Annotated[
    list[Path],
    typer.Argument(
        help="Folders of runs, or folders that hold them; also URIs.",
        parser=to_location,
        metavar="PATH...",
        show_default=False,
    ),
]
