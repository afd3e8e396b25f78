"""The command `scenarios`: the scenario files that come with raysim."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from raysim.cli.ending import refuse
from results.disk import writing

FOLDER = Path(__file__).parents[2] / "scenarios"  # beside the package `raysim`, in a checkout as in an installation


def scenarios(
    copy: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Copy all of them into a new folder, such as scenarios.", file_okay=False),
    ] = None,
) -> None:
    """List the scenario files that come with raysim, or copy them."""
    if copy is None:
        typer.echo("\n".join(str(file.relative_to(FOLDER)) for file in _files()))
        return
    if copy.exists() and any(copy.iterdir()):
        refuse(f"{copy}: must be a new or empty folder, but holds files; name another")

    files = list(_files())
    for file in files:
        target = copy / file.relative_to(FOLDER)
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    typer.echo(f"{len(files)} scenarios in {copy}")


def _files() -> Iterator[Path]:
    """Yields the files of the folder itself first, then those of its subfolders."""
    yield from sorted(FOLDER.rglob("*.yaml"), key=lambda file: (len(file.relative_to(FOLDER).parts), file))
