"""The command `plot`: a figure of runs for a paper."""

from pathlib import Path
from typing import Annotated

import typer

from raysim.cli.ending import refusing_wrong_runs
from raysim.cli.options import By, RunFolders, Split, require_writable, to_location
from results import load


def plot(
    runs: RunFolders,
    metric: Annotated[str, typer.Option(help="accuracy, loss or another metric.")] = "accuracy",
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file: .pdf, .svg or .png.", parser=to_location, metavar="FILE")
    ] = Path("figure.pdf"),
    x: Annotated[
        str | None, typer.Option("--x", help="round, virtual_time, bytes or seconds; by default as in reports.")
    ] = None,
    by: By = None,
    split: Split = "test",
    subject: Annotated[
        str | None, typer.Option(help="Whose own models: client, unseen or peer; by default the global one.")
    ] = None,
    band: Annotated[str, typer.Option(help="Over seeds: minmax, std, ci (of 95 %) or none.")] = "minmax",
    unfinished: Annotated[bool, typer.Option("--unfinished", help="Also draw runs that are not finished.")] = False,
    width: Annotated[float, typer.Option(min=1.0, help="Width of the figure, in inches.")] = 3.3,
) -> None:
    """Draw learning curves of runs for a paper: means over seeds with a band, as PDF, SVG or PNG."""
    require_writable(out)
    from results.plot import Drawn, save

    how: Drawn = {"by": by, "split": split, "subject": subject, "band": band, "unfinished": unfinished}
    with refusing_wrong_runs() as notes:
        notes += save(load(*runs), out, metric, x, width=width, **how)
    typer.echo(f"{metric} in {out}")
