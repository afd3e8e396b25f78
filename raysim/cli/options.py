"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ScenarioFiles = Annotated[list[Path], typer.Argument(help="Scenario files (YAML).", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY.PATH=VALUE", help="Replace a key of the scenario; can be repeated."),
]
Address = Annotated[
    str | None,
    typer.Option(help="Ray cluster, such as auto or host:port; by default RAY_ADDRESS, or else a new local Ray."),
]


def _out(path: Path) -> Path:
    from raysim.errors import CannotMakeFolder
    from raysim.out_folder import require_folder

    try:
        require_folder(path)
    except CannotMakeFolder as error:
        raise typer.BadParameter(str(error)) from error
    return path


Out = Annotated[Path, typer.Option(help="Folder for results; must be absolute in a job on a cluster.", callback=_out)]
RunFolders = Annotated[
    list[Path], typer.Argument(help="Folders of runs, or folders that hold them.", show_default=False)
]
