"""The command `scenarios`: the scenario files that come with raysim."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from raysim.cli.bad_input import refuse
from results.disk import writing
from results.terminal import Terminal

FOLDER = Path(__file__).parents[2] / "scenarios"  # beside the package `raysim`, in a checkout as in an installation


def scenarios(
    copy: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Copy all of them into a new folder, such as scenarios.", file_okay=False),
    ] = None,
) -> None:
    """List the scenario files that come with raysim, or copy them."""
    if copy is None:
        _show()
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


def _show() -> None:
    heads = (Column("file", no_wrap=True), "what it is")
    table = Table(*heads, box=None, header_style="bold", padding=(0, 2, 0, 0))
    for file in _files():
        table.add_row(str(file.relative_to(FOLDER)), escape(_first_sentence(file)))
    Terminal().print(table)


def _files() -> Iterator[Path]:
    """Yields the files of the folder itself first, then those of its subfolders."""
    yield from sorted(FOLDER.rglob("*.yaml"), key=lambda file: (len(file.relative_to(FOLDER).parts), file))


def _first_sentence(file: Path) -> str:
    """Returns the first sentence of the comment with which a scenario file opens."""
    opening = re.match(r"(#.*\n)*", file.read_text(encoding="utf-8"))
    comment = " ".join(line.lstrip("# ") for line in (opening[0] if opening else "").splitlines())
    return re.split(r"(?<!et al)\.(?: |$)", comment)[0]
