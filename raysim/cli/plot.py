"""The command `plot`: a figure of runs for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from raysim.cli.bad_input import refuse, refusing_wrong_runs
from raysim.cli.options import RunFolders, require_writable, to_location


def plot(
    runs: RunFolders,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file: .pdf, .svg or .png.", parser=to_location, metavar="FILE")
    ] = Path("figure.pdf"),
    metric: Annotated[str, typer.Option(help="accuracy, loss, or another one that was evaluated.")] = "accuracy",
    x: Annotated[str, typer.Option("--x", help="round, virtual_time, bytes or seconds.")] = "round",
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="Make a line for each value of a key; by default of all keys that differ but seed. Can be repeated.",
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="test, train or validation.")] = "test",
    subject: Annotated[
        str | None, typer.Option(help="Whose own models: client, unseen or peer; by default the global one.")
    ] = None,
    band: Annotated[str, typer.Option(help="Over seeds: min-max, std, ci (of 95 %) or none.")] = "min-max",
    order: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="The next line, by its label; can be repeated.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL=TEXT", help="Another text for a line in the legend; can be repeated."),
    ] = None,
    width: Annotated[str, typer.Option(help="Of the figure, in in, cm, mm or pt.")] = "3.3in",
    height: Annotated[str | None, typer.Option(help="Of the figure; by default 0.7 of the width.")] = None,
    font: Annotated[str, typer.Option(help="A font that matplotlib finds, such as serif.")] = "DejaVu Sans",
    size: Annotated[float, typer.Option(min=1.0, help="Of all letters, in points.")] = 8.0,
) -> None:
    """Draw learning curves of runs for a paper: means over seeds with a band, as PDF, SVG or PNG."""
    require_writable(out)
    from results import load
    from results.plot import save
    from results.run_set import whole

    pairs = [text.rpartition("=") for text in label or []]
    if wrong := [text for text, (old, _, _) in zip(label or [], pairs, strict=True) if not old]:
        refuse([ValueError(f"--label: must be LABEL=TEXT, such as fedavg=FedAvg, got {wrong[0]!r}")])
    labels = {old: new for old, _, new in pairs}
    notes: list[str] = []
    with refusing_wrong_runs():
        how: dict[str, Any] = {
            "by": by,
            "split": split,
            "subject": subject,
            "band": band,
            "order": order or [],
            "labels": labels,
        }
        page: dict[str, Any] = {"width": width, "height": height, "font": font, "size": size}
        whole(load(*runs, damaged=notes), lambda some: save(some, out, metric, x, **page, **how), notes)
    for note in notes:
        typer.echo(note, err=True)
    typer.echo(f"{metric} over {x} in {out}")
