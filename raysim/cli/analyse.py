"""Commands that read what runs left: `show`, `compare`, `report`, `plot` and `export`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from raysim.cli.command import By, RunFolder, RunFolders, Split, refusing_wrong_runs, to_location
from raysim.cli.watch import ls
from raysim.runs.result import Result
from results import load, open_run, summary
from results.measure import NotComparable, parse_at, parse_target
from results.render import render
from results.runs import How
from results.texts import Terminal, count, harmless


def show(run: RunFolder) -> None:
    """Summarise a finished, running or killed run; or the runs in a folder, such as that of a sweep."""
    if run.is_dir() and not (run / "run.json").exists():
        ls(run)
        return
    with refusing_wrong_runs():
        found, console = summary(open_run(run)), Terminal()
        console.print(found)
        if found.scores.query("split == 'test'")["best"].notna().any():
            text = "best: selected on the test split, so it is too optimistic; run.keep_best avoids it"
            console.print(text, style="dim", soft_wrap=True, highlight=False)


class Format(StrEnum):
    """How a comparison can be printed."""

    table = "table"
    markdown = "markdown"
    latex = "latex"
    csv = "csv"


_Keys = Annotated[list[str] | None, typer.Option(metavar="KEY", help="Make a column for each value of a key.")]
_Metrics = Annotated[
    list[str] | None,
    typer.Option(
        help="accuracy, loss, ..., virtual_time, up_bytes, down_bytes, local_steps, staleness, epsilon or seconds; by "
        "default accuracy, and epsilon where runs have one."
    ),
]
_Reduce = Annotated[
    str,
    typer.Option(
        help="How a run's evaluations become one number: last, at_best_validation, best, or max_, min_ or "
        "mean_of_last_K."
    ),
]
_Targets = Annotated[
    list[str] | None,
    typer.Option(metavar="METRIC=VALUE", help="Add what was spent until this value is reached, see --cost."),
]
_Costs = Annotated[
    str | None,
    typer.Option(
        metavar="COST,...",
        help="What --target counts: rounds, virtual_time, updates, bytes, up_bytes, down_bytes, flops or energy; by "
        "default the first two and bytes.",
    ),
]
_At = Annotated[
    str | None,
    typer.Option(
        metavar="COST=VALUE",
        help="Count evaluations up to a budget, such as virtual_time=3600, bytes=5MB or bytes=common.",
    ),
]
_Subject = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="Whose metrics: global, client, unseen or peer; by default peer if no run has a server, else global.",
    ),
]
_Over = Annotated[
    str, typer.Option(help="What to take over clients or peers: mean, micro, min, max, gap, p10, p50 or p90.")
]
_Baselines = Annotated[
    list[str] | None,
    typer.Option(metavar="[KEY=]VALUE", help="The baseline, such as fedavg; by default that of the first row."),
]


def compare(
    runs: RunFolders,
    by: By = None,
    columns: _Keys = None,
    metric: _Metrics = None,
    reduce: _Reduce = "last",
    target: _Targets = None,
    cost: _Costs = None,
    at: _At = None,
    subject: _Subject = None,
    split: Split = "test",
    over: _Over = "mean",
    unfinished: Annotated[bool, typer.Option("--unfinished", help="Also count runs that are not finished.")] = False,
    paired: Annotated[
        bool, typer.Option("--paired", help="Compare seed by seed with a baseline: differences with intervals.")
    ] = False,
    baseline: _Baselines = None,
    percent: Annotated[bool, typer.Option("--percent", help="Print accuracies in percent, except in CSV.")] = False,
    format: Annotated[Format, typer.Option(help="How to print it; csv is not rounded.")] = Format.table,
) -> None:
    """Compare runs: means and standard deviations over seeds, in a table.

    --by, --columns, --metric, --target and --baseline can be repeated.
    """
    with refusing_wrong_runs() as notes:
        if len(subject or []) > 1:
            text = f"must be given once, got {', '.join(subject or [])}; each of them has its own comparison"
            raise NotComparable(f"--subject: {text}")
        how: How = {
            "reduce": reduce,
            "target": [parse_target(text) for text in target or []],
            "at": None if at is None else parse_at(at),
            "subject": subject[0] if subject else None,
            "split": split,
            "over": over,
        }
        if metric:
            how["metric"] = metric
        if cost is not None:
            if not target:
                text = "must be given together with --target, up to which it is counted"
                raise NotComparable(f"--cost: {text}, got {cost!r} alone; add --target accuracy=0.8, or take --at")
            how["cost"] = [name.strip() for name in cost.split(",")]
        rows: dict[str, Any] = {"by": by, "columns": columns or [], "paired": paired, "baseline": baseline or []}
        rows["unfinished"] = unfinished
        found = load(*runs).compared(**rows, **how)
        notes += found.notes
    rendered = render(found, format, percent, Terminal().width)
    if isinstance(rendered, str):
        typer.echo(harmless(rendered))  # the console would wrap its lines
    else:
        Terminal().print(rendered)


def report(
    runs: RunFolders,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.", parser=to_location, metavar="FILE")] = Path(
        "report.html"
    ),
    svg: Annotated[
        Path | None,
        typer.Option(help="Also write each figure as a file here.", parser=to_location, metavar="FOLDER"),
    ] = None,
    by: By = None,
) -> None:
    """Make one HTML page with figures of runs; it needs no network and no other file."""
    from results.report import report as make_report

    with refusing_wrong_runs():
        page = make_report(load(*runs), by)
    page.write(out, svg)
    typer.echo(f"{count(len(page.pictures), 'figure')} in {out}")


def plot(
    runs: RunFolders,
    metric: Annotated[str, typer.Option(help="accuracy, loss or another metric.")] = "accuracy",
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file: .pdf, .svg or .png.", parser=to_location, metavar="FILE")
    ] = Path("figure.pdf"),
    x: Annotated[
        str | None,
        typer.Option(
            "--x", help="round, virtual_time, bytes, up_bytes, down_bytes or seconds; by default as in reports."
        ),
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
    from results.plot import Drawn, save

    how: Drawn = {"by": by, "split": split, "subject": subject, "band": band, "unfinished": unfinished}
    with refusing_wrong_runs() as notes:
        notes += save(load(*runs), out, metric, x, width=width, **how)
    typer.echo(f"{metric} in {out}")


def export(
    run: RunFolder,
    to: Annotated[str, typer.Option("--to", help="hf, peft, safetensors, onnx or torch-export.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="The folder; by default one of that name in the run's folder.")
    ] = None,
    peer: Annotated[int | None, typer.Option(help="The number of a peer.", show_default=False)] = None,
    client: Annotated[
        int | None, typer.Option(help="The number of a client with its own saved model.", show_default=False)
    ] = None,
    level: Annotated[
        float | None, typer.Option(help="The level of a narrower or shallower model.", show_default=False)
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="A group of clients for which the server has a model.", show_default=False)
    ] = None,
    best: Annotated[bool, typer.Option("--best", help="The best model, which run.keep_best keeps.")] = False,
) -> None:
    """Write the final model for other programs: transformers, peft, torch or ONNX."""
    with refusing_wrong_runs(ValueError, FileNotFoundError):
        folder = Result(run).export(to, out, peer, client=client, level=level, group=group, best=best)
    typer.echo(f"{folder}: {', '.join(sorted(one.name for one in folder.iterdir()))}")
