"""The commands `run`, `resume` and `fork`, which carry out runs: they show progress, then the summary, and what would
have been sooner."""

import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.console import Console
from rich.markup import escape

from raysim.cli.command import (
    Address,
    Case,
    Inline,
    Local,
    Out,
    Overrides,
    RunFolder,
    ending_by_signals,
    place_of,
    refuse,
    refusing_wrong_runs,
)
from raysim.engine.checkpoint import Checkpoint
from raysim.observers.live import Bar, Lines, bars
from raysim.observers.observer import Observer
from raysim.parts.errors import ScenarioError
from raysim.runs import fork as forks
from raysim.runs import run as runs
from raysim.runs.observing import observers_of
from raysim.runs.place import RunPlace
from raysim.runs.result import Result
from raysim.scenario import Scenario, load_scenario
from results import summary
from results.texts import Terminal

_SHARE = 0.5  # of a command's time that jobs may take: where they take more, another way would change little


def run(
    scenario: Annotated[Path, typer.Argument(help="Scenario file (YAML).", show_default=False)],
    overrides: Overrides = None,
    case: Case = None,
    inline: Inline = False,
    local: Local = None,
    dry: Annotated[bool, typer.Option("--dry", help="Simulate the timeline only; nothing is trained.")] = False,
    address: Address = None,
    out: Out = Path("runs"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the scenario's last run below --out, if it ended early.")
    ] = False,
) -> None:
    """Run a scenario. The exit code is 3 if it diverged."""
    place = RunPlace(inline=True) if dry else place_of(inline, local, address)
    try:
        loaded = load_scenario(scenario, overrides or [], case)
        observers_of(loaded)  # raises it, too
    except ScenarioError as error:
        refuse(error)
    how: dict[str, Any] = {"inline": inline, "local": local, "address": address, "out": out, "resume": resume}
    _carry_out(loaded, partial(runs.run, loaded, dry=dry, **how), place, new=True, dry=dry)


def resume(
    folder: RunFolder,
    overrides: Overrides = None,
    inline: Inline = False,
    local: Local = None,
    address: Address = None,
) -> None:
    """Continue a run that ended early, or a finished one for more rounds."""
    place = place_of(inline, local, address)
    with refusing_wrong_runs():
        scenario = runs.scenario_to_resume(folder, overrides or [])
    checkpoint = Checkpoint.read(folder)
    begin = f"round {checkpoint.round + 1}" if checkpoint else "its beginning, because it has no checkpoint"
    typer.echo(f"{folder.name} continues from {begin}")
    how: dict[str, Any] = {"inline": inline, "local": local, "address": address}
    _carry_out(scenario, partial(runs.resume, folder, overrides or [], **how), place)


def fork(
    folder: RunFolder,
    at: Annotated[int, typer.Option(min=1, help="Server steps, or rounds of peers, after which the settings change.")],
    overrides: Overrides = None,
    inline: Inline = False,
    local: Local = None,
    address: Address = None,
    out: Out = Path("runs"),
) -> None:
    """Start a new run from a version of another one, with other settings from there on."""
    place = place_of(inline, local, address)
    with refusing_wrong_runs():
        _, scenario = forks.scenario_to_fork(folder, at, overrides or [])
    how: dict[str, Any] = {"inline": inline, "local": local, "address": address, "out": out}
    _carry_out(scenario, partial(forks.fork, folder, at, overrides or [], **how), place)


def _carry_out(
    scenario: Scenario, start: Callable[..., Result], place: RunPlace, *, new: bool = False, dry: bool = False
) -> None:
    """Shows the progress of a run, then its summary, and ends the command; exit code 3: it diverged.

    start: gets the observers. new: whether to say what would have been sooner.
    """
    console, began = Terminal(), time.perf_counter()
    with ending_by_signals():
        place.connect([scenario])  # before the progress display starts, because Ray prints something
        with _shown(console, scenario, f"starting in {place}", transient=dry) as observer:
            result = start(progress=False, observers=[observer])
        console.print(summary(result.run))
        console.print(f"results in [bold]{escape(str(result.folder))}", soft_wrap=True, highlight=False)
        if new:
            hint(began, [result.folder])
        raise typer.Exit(3 if result.run.status == "diverged" else 0)


@contextmanager
def _shown(console: Console, scenario: Scenario, state: str, *, transient: bool) -> Iterator[Observer]:
    """Yields the observer that shows a run. What runs log within the block is printed: information to the console, and
    warnings to standard error."""
    log, printing = logging.getLogger("raysim"), _Printing(console)
    before = log.level
    log.addHandler(printing)
    log.setLevel(logging.INFO)
    try:
        with bars(console, transient=transient) if console.is_interactive else nullcontext() as display:
            if display:
                line = display.add_task(f"[bold]{escape(scenario.name)}", total=scenario.run.rounds, state=state)
                yield Bar(display, line)
            else:
                console.print(f"{escape(scenario.name)}  {state}", soft_wrap=True, highlight=False)
                yield Lines()
    finally:
        log.setLevel(before)
        log.removeHandler(printing)


class _Printing(logging.Handler):
    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            print(record.getMessage(), file=sys.stderr)
        else:
            self._console.print(escape(record.getMessage()), soft_wrap=True, highlight=False)


def hint(began: float, folders: Sequence[Path], processes: int | None = None) -> None:
    """Prints which option would have carried out runs sooner than a Ray that this process started for them, and what
    that would have saved at most, by their own measured times; nothing if the jobs took most of the time.

    began: when the command looked for Ray, by `time.perf_counter`. processes: how many runs are carried out at a time
    with `--inline`; None: one run, which `--local` may carry out, too.
    """
    placement = sys.modules.get("actors.placement")  # not loaded without Ray
    if not (folders and placement and placement.started_here()):
        return
    took = time.perf_counter() - began
    jobs, busy, workers = job_times([Result(folder).table("tasks") for folder in folders])
    option, needs = "--inline", jobs / (processes or 1)
    if processes is None and workers > 1 and busy < 0.9 * jobs:  # they were at work side by side
        option, needs = f"--local {workers}", busy
    if needs <= _SHARE * took:
        saved = f"{option} would save up to {took - needs:.1f} s, with the same numbers"
        text = f"[dim]jobs took {needs:.1f} of {took:.1f} s with the start, and Ray the rest; {saved}[/]"
        Terminal().print(text, soft_wrap=True, highlight=False)


def job_times(tasks: Sequence[pa.Table]) -> tuple[float, float, int]:
    """Returns how many seconds the jobs of runs took, one after another; in how many at least one of a run was at work;
    and how many workers trained clients or peers, the most in a run. tasks: the table `tasks` of each."""
    jobs = busy = 0.0
    workers = 0
    for table in tasks:
        until = float("-inf")
        for start, took in sorted(zip(table["started_s"].to_pylist(), table["seconds"].to_pylist(), strict=True)):
            jobs += took
            busy += max(start + took - max(start, until), 0.0)
            until = max(until, start + took)
        workers = max(workers, len({name for name in table["worker"].to_pylist() if name.startswith("client")}))
    return jobs, busy, workers
