"""The command `partition`: who holds which data, before any run."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from raysim.cli.bad_input import refuse
from raysim.cli.options import Case, Overrides, ScenarioFiles, require_writable, to_location
from raysim.parts.errors import BadInput, ScenarioError
from raysim.runs.inspection import write_partition
from raysim.scenario import load_scenario
from results import load, open_run
from results.terminal import Terminal
from results.texts import count

if TYPE_CHECKING:
    import pandas as pd

_CLIENTS, _LABELS = 20, 12  # most clients and labels in the terminal's table


def partition(
    scenarios: ScenarioFiles,
    overrides: Overrides = None,
    case: Case = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Also draw it, as an HTML page; also a URI.", parser=to_location, metavar="FILE"
        ),
    ] = None,
) -> None:
    """Show who holds which data under scenario files, as numbers and as a page of pictures; nothing is run."""
    if out is not None:
        require_writable(out)
    from results.report import report

    console = Terminal()
    with TemporaryDirectory() as temporary:
        folders = []
        for place, path in enumerate(scenarios):
            try:
                scenario = load_scenario(path, overrides or [], case)
                folders.append(Path(temporary) / f"{place}-{scenario.name}")
                write_partition(scenario, folders[-1])
            except ScenarioError as error:
                refuse(error)
            except BadInput as bad:
                refuse(ScenarioError(str(path), [bad.problem]))
            console.print(Text(str(path), style="bold"), soft_wrap=True)
            console.print(_show(scenario.data.clients, open_run(folders[-1]).pandas("partition")))
        if out is not None:
            page = report(load(*folders))
            page.write(out)
            typer.echo(f"{count(len(page.pictures), 'figure')} in {out}")


def _show(clients: int, held: pd.DataFrame) -> RenderableType:
    """Returns the summary of a partition. held: the table `partition`."""
    trained = held[held["split"] == "train"]
    counts = trained.pivot_table(index="client", columns="label", values="samples", fill_value=0)
    counts = counts.reindex(range(clients), fill_value=0).astype(int)
    sizes, labels = counts.sum(axis="columns"), (counts > 0).sum(axis="columns")
    mixes = counts[sizes > 0].div(sizes[sizes > 0], axis="index")
    skew = (mixes - counts.sum() / counts.to_numpy().sum()).abs().sum(axis="columns") / 2
    tests = held[held["split"] == "test"]["samples"].sum()
    lines = [
        f"{clients} clients hold {sizes.sum()} training samples, from {sizes.min()} to {sizes.max()}, "
        f"{sizes.median():g} in the middle",
        f"labels of a client: from {labels.min()} to {labels.max()} of {counts.shape[1]}, mean {labels.mean():.3g}",
        f"label skew: {skew.mean():.3f} (distance from the mix of labels of all: 0 equal, 1 disjoint)",
        f"own test samples: {tests}" if tests else "own test samples: none",
    ]
    if empty := int((sizes == 0).sum()):
        lines.append(f"{empty} clients hold nothing and never take part")
    return Group(*map(Text, lines), _table(counts))


def _table(counts: pd.DataFrame) -> Table:
    """Returns clients by labels, as far as there is room. counts: training samples (clients, labels)."""
    shown = counts.iloc[:_CLIENTS, :_LABELS]
    caption = (
        f"the first of {counts.shape[0]} clients and {counts.shape[1]} labels" if shown.size < counts.size else None
    )
    labels = (f"label {label}" if label == shown.columns[0] else str(label) for label in shown)
    heads = (Column(head, justify="right") for head in ("client", "samples", *labels))
    table = Table(*heads, box=None, header_style="dim", padding=(0, 1, 0, 0), caption=caption, caption_justify="left")
    for client, row in shown.iterrows():
        held = counts.loc[[client]].to_numpy().sum()
        table.add_row(str(client), str(held), *(str(count) if count else "." for count in row))
    return table
