"""The command `plot`: a figure of runs for a paper."""

from pathlib import Path
from typing import Annotated, Any

import typer

from raysim.cli.bad_input import refuse, refusing_wrong_runs
from raysim.cli.options import By, require_writable, to_location
from results import load
from results.run_set import whole


def plot(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="RUNS... [METRICS...]",
            help="Folders of runs, or folders that hold them; also URIs. Then what to draw, a panel each: accuracy, "
            "loss or another metric; by default accuracy.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file: .pdf, .svg or .png.", parser=to_location, metavar="FILE")
    ] = Path("figure.pdf"),
    x: Annotated[
        str | None,
        typer.Option(
            "--x",
            help="round, virtual_time, bytes or seconds; by default virtual_time if delays are in seconds, else round.",
        ),
    ] = None,
    by: By = None,
    facet: Annotated[str | None, typer.Option(metavar="KEY", help="Make a panel for each value of a key.")] = None,
    split: Annotated[str, typer.Option(help="test, train or validation.")] = "test",
    subject: Annotated[
        str | None, typer.Option(help="Whose own models: client, unseen or peer; by default the global one.")
    ] = None,
    band: Annotated[str, typer.Option(help="Over seeds: minmax, std, ci (of 95 %) or none.")] = "minmax",
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Also draw runs that are not finished, beside those that are.")
    ] = False,
    order: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="The next line, by its label; can be repeated.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL=TEXT", help="Another text for a line in the legend; can be repeated."),
    ] = None,
    style: Annotated[
        str,
        typer.Option(help="paper, page (as in reports), dark (for slides), or a style of matplotlib's."),
    ] = "paper",
    width: Annotated[str, typer.Option(help="Width of the figure, in in, cm, mm or pt.")] = "3.3in",
    height: Annotated[
        str | None, typer.Option(help="Height of the figure; by default 0.7 of the width, for each row of panels.")
    ] = None,
    font: Annotated[str, typer.Option(help="A font that matplotlib finds, such as serif.")] = "DejaVu Sans",
    size: Annotated[float, typer.Option(min=1.0, help="Size of all letters, in points.")] = 8.0,
) -> None:
    """Draw learning curves of runs for a paper: means over seeds with a band, as PDF, SVG or PNG."""
    require_writable(out)
    runs, metrics = _told_apart(words)
    from results.plot import save

    pairs = [text.rpartition("=") for text in label or []]
    if wrong := [text for text, (old, _, _) in zip(label or [], pairs, strict=True) if not old]:
        refuse(f"--label: must be LABEL=TEXT, such as fedavg=FedAvg, got {wrong[0]!r}")
    how: dict[str, Any] = {"by": by, "facet": facet, "split": split, "subject": subject, "band": band}
    how |= {"unfinished": unfinished, "order": order or [], "labels": {old: new for old, _, new in pairs}}
    page: dict[str, Any] = {"style": style, "width": width, "height": height, "font": font, "size": size}
    with refusing_wrong_runs() as notes:
        notes += whole(load(*runs, damaged=notes), lambda some: save(some, out, metrics, x, **page, **how), notes)
    typer.echo(f"{', '.join(metrics)} in {out}")


def _told_apart(words: list[str]) -> tuple[list[Path], list[str]]:
    """Returns the folders and the metrics. A word is a metric if it is a plain name, and there is no such folder."""
    metrics = [word for word in words if word.isidentifier() and not Path(word).exists()]
    runs = [to_location(word) for word in words if word not in metrics]
    if not runs:
        refuse(f"RUNS: must be a folder that exists, got {' '.join(words)}; give one of runs, then metrics")
    return runs, metrics or ["accuracy"]
