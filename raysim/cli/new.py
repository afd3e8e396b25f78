"""Commands that write files to start from: `scenarios`, those that come with raysim, and `new`, a custom class."""

import importlib.util
import keyword
import re
import shutil
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from raysim.cli.check import proposals
from raysim.cli.command import refuse
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
    for file in (*files, *FOLDER.glob(_SCHEMA)):  # a release has the schema there, too
        target = copy / file.relative_to(FOLDER)
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    typer.echo(f"{len(files)} scenarios in {copy}")


def _files() -> Iterator[Path]:
    """Yields the files of the folder itself first, then those of its subfolders."""
    yield from sorted(FOLDER.rglob("*.yaml"), key=lambda file: (len(file.relative_to(FOLDER).parts), file))


_SCHEMA = "scenario.schema.json"  # written by `raysim schema`
TEMPLATES = Path(__file__).parents[1] / "templates"


class Start(Enum):
    """What can be started."""

    algorithm = "algorithm"
    peer_algorithm = "peer-algorithm"
    data = "data"
    partition = "partition"
    model = "model"
    uplink = "uplink"
    release = "release"
    delay = "delay"
    metric = "metric"
    observer = "observer"


def new(
    what: Annotated[Start, typer.Argument(help="What the class is to be.", show_default=False)],
    name: Annotated[str, typer.Argument(help="Name of the file, such as my_algorithm.", metavar="NAME")] = "",
) -> None:
    """Start a custom class: write a working file, its test and a scenario with it into this folder.

    For a file or a folder of samples, `raysim new data PATH` prints what it proposes for a scenario file instead.
    """
    if what is Start.data and name and Path(name).exists():
        proposals([Path(name)])
        return
    with writing(Path(f"{name}.py")):
        _require_name(name)
        files = _write(what, name)
    typer.echo(f"{', '.join(map(str, files))}\n\nraysim test {name}:{_parent(name)}\nraysim run {name}.yaml --inline")
    typer.echo(f"python -m pytest test_{name}.py")


def _parent(name: str) -> str:
    """Returns the name of the class in a module."""
    return "".join(word.capitalize() for word in name.split("_"))


def _write(what: Start, name: str) -> list[Path]:
    """Writes the files, and returns them. Ends the command if one of them is there already."""
    parent = _parent(name)
    template = TEMPLATES / what.value.replace("-", "_")
    files = {
        Path(f"{name}.py"): template.with_suffix(".py"),
        Path(f"test_{name}.py"): TEMPLATES / "laws.py",
        Path(f"{name}.yaml"): template.with_suffix(".yaml"),
    }
    if there := [str(file) for file in files if file.exists()]:
        refuse(f"new: must not overwrite files, but {', '.join(there)} is here already; take another name")
    for file, source in files.items():
        text = source.read_text(encoding="utf-8")
        text = re.sub(r"\b\w+Template\b", parent, text)
        text = text.replace("name: template\n", f"name: {name}\n").replace('"template"', f'"{name}:{parent}"')
        if file.suffix == ".yaml" and Path(_SCHEMA).exists():
            text = f"# yaml-language-server: $schema={_SCHEMA}\n{text}"
        file.write_text(text.replace("scenario.yaml", f"{name}.yaml"), encoding="utf-8")
    return list(files)


def _require_name(name: str) -> None:
    """Ends the command unless a module can have this name, and none has."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        must = "must have a name for a Python file, of lower-case letters, digits and underscores, such as my_class"
        refuse(f"new: {must}, got {name!r}")
    if not Path(f"{name}.py").exists() and importlib.util.find_spec(name):
        refuse(f"new: must be a new name, but Python has a module {name!r} already; take another name")
