"""The command line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raysim.errors import RunFailed, ScenarioError
from raysim.scenario import Scenario
from raysim.scenario.load import load_scenario

if TYPE_CHECKING:
    from results.compare import Comparison

app = typer.Typer(
    help="Simulates federated learning at scale, in virtual time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Scenarios = Annotated[list[Path], typer.Argument(help="Scenario files (YAML).", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY.PATH=VALUE", help="Replace a key of the scenario; may be given again."),
]
Address = Annotated[
    str | None, typer.Option(help="Ray cluster, such as auto or host:port; else RAY_ADDRESS, else a local one.")
]
Out = Annotated[
    Path, typer.Option(help="Folder for results; absolute in a submitted job.", file_okay=False, writable=True)
]


@app.command()
def run(
    scenarios: Scenarios,
    overrides: Overrides = None,
    inline: Annotated[bool, typer.Option("--inline", help="In this process, without Ray; same numbers.")] = False,
    dry: Annotated[bool, typer.Option("--dry", help="The event timeline alone: nothing is trained.")] = False,
    address: Address = None,
    out: Out = Path("runs"),
) -> None:
    """Run scenarios, one after another."""
    right, wrong = _load(scenarios, overrides)
    _refuse(wrong)  # all are right, or none is started
    from raysim.cli.display import carry_out

    if not (inline or dry):
        from raysim.runner import connect

        connect([scenario for _, scenario in right], address)  # what Ray prints comes before the progress display
    for _, scenario in right:
        carry_out(scenario, inline=inline, dry=dry, address=address, out=out)


@app.command()
def sweep(
    scenario: Annotated[Path, typer.Argument(help="Scenario file, with or without a block `sweep:`.")],
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY.PATH=VALUE,...", help="A key's values, in turn; may be given again."),
    ] = None,
    seeds: Annotated[str | None, typer.Option(metavar="0,1,2", help="Short for --set seed=0,1,2.")] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY.PATH=LOW,HIGH[,log]", help="Tune a key in this range; may be given again."),
    ] = None,
    parallel: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time; else as many as the cluster has room for.")
    ] = None,
    inline: Annotated[bool, typer.Option("--inline", help="Without Ray, each run in a process; same numbers.")] = False,
    address: Address = None,
    out: Out = Path("runs"),
) -> None:
    """Run every combination of a scenario's sweep, side by side, or tune it."""
    from raysim.sweep import load_sweep

    overrides = [*(overrides or []), *([f"seed={seeds}"] if seeds is not None else [])]
    try:
        plan = load_sweep(scenario, overrides, search or [])
        from raysim.cli.sweep_display import carry_out

        right = carry_out(plan, out=out, inline=inline, address=address, parallel=parallel)
    except ScenarioError as error:  # a search can make wrong ones later
        _refuse([error])
    else:
        raise typer.Exit(0 if right else 1)


@app.command()
def check(scenarios: Scenarios, overrides: Overrides = None) -> None:
    """Check scenarios and sweeps; needs neither Ray nor data."""
    from raysim.sweep import load_sweep

    wrong = []
    for path in scenarios:
        try:
            plan = load_sweep(path, overrides or [])
        except ScenarioError as error:
            wrong.append(error)
            continue
        found = plan.scenarios()
        first, runs = found[0], f", {len(found)} runs" if len(found) > 1 else ""
        runs += ", to be tuned" if plan.search else ""
        typer.echo(f"{path}: right ({first.name}, {first.algorithm.name}, {first.data.clients} clients{runs})")
    _refuse(wrong)


def _load(paths: list[Path], overrides: list[str] | None) -> tuple[list[tuple[Path, Scenario]], list[ScenarioError]]:
    """Those that are right, and what is wrong with the others."""
    right, wrong = [], []
    for path in paths:
        try:
            right.append((path, load_scenario(path, overrides or [])))
        except ScenarioError as error:
            wrong.append(error)
    return right, wrong


def _refuse(wrong: list[ScenarioError]) -> None:
    for error in wrong:
        typer.echo(str(error), err=True)
    if wrong:
        raise typer.Exit(2)


@app.command("list")
def list_parts() -> None:
    """List algorithms, data sets, models, delays, partitioners: what a scenario can name."""
    from raysim.cli.display import show_parts

    show_parts()


@app.command()
def show(run: Annotated[Path, typer.Argument(help="A run's folder.", show_default=False)]) -> None:
    """Summarise a run from its tables."""
    from rich.console import Console

    from results import open_run, summary
    from results.show import render

    with _told():
        Console().print(render(summary(open_run(run))))


class Format(StrEnum):
    """Of a comparison."""

    table = "table"
    markdown = "markdown"
    latex = "latex"
    csv = "csv"


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Runs' folders, or folders that hold them.", show_default=False)],
    by: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="A row for each value; by default all keys that differ.")
    ] = None,
    columns: Annotated[list[str] | None, typer.Option(metavar="KEY", help="A column for each value.")] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="accuracy, loss, ..., virtual_time, up_bytes, down_bytes, local_steps or seconds."),
    ] = None,
    reduce: Annotated[
        str, typer.Option(help="A run's evaluations to one: last, best, max_of_last_K, min_of_..., mean_of_...")
    ] = "last",
    target: Annotated[
        list[str] | None, typer.Option(metavar="METRIC=VALUE", help="Adds rounds, time and bytes until it is reached.")
    ] = None,
    subject: Annotated[str, typer.Option(help="global, client, unseen or peer.")] = "global",
    split: Annotated[str, typer.Option(help="test or train.")] = "test",
    over: Annotated[str, typer.Option(help="Of clients or peers: mean, micro, min, max, gap, p10, p50, p90.")] = "mean",
    unfinished: Annotated[bool, typer.Option("--unfinished", help="Runs that are not finished count too.")] = False,
    paper: Annotated[Path | None, typer.Option(help="Published numbers to put beside (YAML).")] = None,
    percent: Annotated[bool, typer.Option("--percent", help="Accuracies in percent, but in CSV.")] = False,
    format: Annotated[Format, typer.Option(help="How to print it; csv is not rounded.")] = Format.table,
) -> None:
    """Compare runs: means over seeds. --by, --columns, --metric and --target may be given again."""
    from results import load
    from results.compare import compare as compare_runs
    from results.measure import Measure, parse_target
    from results.paper import beside, read_paper

    with _told():
        targets = tuple(map(parse_target, target or []))
        measure = Measure(tuple(metric or ["accuracy"]), reduce, targets, subject, split, over)
        published = None if paper is None else read_paper(paper)
        comparison = compare_runs(load(*runs), by, columns or [], measure, unfinished)
        comparison = comparison if published is None else beside(comparison, published)
    _print_comparison(comparison, format, percent)


def _print_comparison(comparison: Comparison, format: Format, percent: bool) -> None:
    from rich.console import Console

    from results.render import render

    not_run = comparison.not_run if format is Format.csv else ()  # other formats say it themselves
    for note in (*comparison.notes, *(f"not run: {text}" for text in not_run)):
        typer.echo(note, err=True)
    console = Console()
    rendered = render(comparison, format, percent, console.width)
    if isinstance(rendered, str):
        typer.echo(rendered)  # the console would break its lines
    else:
        console.print(rendered)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Runs' folders, or folders that hold them.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.", dir_okay=False, writable=True)] = Path(
        "report.html"
    ),
    svg: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write each figure as a file too.", file_okay=False)
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="A line for each value; by default for all that differ but in seed."),
    ] = None,
) -> None:
    """Make one HTML page of runs, with figures; it needs no network. --by may be given again."""
    for path in filter(None, (out, svg)):
        if not os.access(path.absolute().parent, os.W_OK):
            typer.echo(f"{path}: must be in a folder that is there and can be written to; make the folder", err=True)
            raise typer.Exit(2)
    from results import load
    from results.report import report as make

    with _told():
        made = make(load(*runs), by)
    made.write(out, svg)
    typer.echo(f"{len(made.pictures)} figures in {out}")


@contextmanager
def _told() -> Iterator[None]:
    """Where runs are not what they must be, says why and ends with exit code 2."""
    from results import NotARun, NotComparable, UnknownKey

    try:
        yield
    except (NotARun, NotComparable, UnknownKey) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from raysim.sweep.file import ScenarioFile

    typer.echo(json.dumps(ScenarioFile.model_json_schema(), indent=2))


def main() -> None:
    """Exit codes: 0, 1 for a run that failed, 2 for bad input, 130 for Ctrl-C."""
    from actors import MissingResources

    if "" not in sys.path:  # as under `python -m`: an algorithm of the user's own lies where raysim is called
        sys.path.insert(0, str(Path.cwd()))
    try:
        app()
    except (MissingResources, ScenarioError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except RunFailed as error:
        print(f"{error.traceback.rstrip()}\n\nThe run failed in {error}".lstrip(), file=sys.stderr)
        sys.exit(1)
