"""The command `sweep`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from raysim.cli.bad_input import refuse
from raysim.cli.options import Address, Log, Observe, Out, named_observers, require_writable, to_location
from raysim.cli.signals import ending_by_signals
from raysim.cli.sweep_display import carry_out
from raysim.parts.errors import ScenarioError
from raysim.sweep import load_sweep


def sweep(
    scenario: Annotated[Path, typer.Argument(help="Scenario file, with or without a block `sweep:`.")],
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY.PATH=VALUE,...", help="Give a key each of these values; can be repeated."),
    ] = None,
    seeds: Annotated[str | None, typer.Option(metavar="0,1,2", help="Short for --set seed=0,1,2.")] = None,
    cases: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Take only these cases of the sweep; by default all of them.")
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY.PATH=LOW,HIGH[,log]", help="Tune a key in this range; can be repeated."),
    ] = None,
    parallel: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time; by default as many as the cluster, or the machine, has room for."),
    ] = None,
    inline: Annotated[
        bool, typer.Option("--inline", help="Run without Ray, each run in a process; the numbers are the same.")
    ] = False,
    address: Address = None,
    out: Out = Path("runs"),
    write_best: Annotated[
        Path | None,
        typer.Option(help="Write the scenario of a search's best trial here.", parser=to_location, metavar="FILE"),
    ] = None,
    observe: Observe = None,
    log: Log = None,
) -> None:
    """Run every combination of a scenario's sweep, side by side, or tune its keys."""
    watchers = named_observers(observe, log)
    overrides = [*(overrides or []), *([f"seed={seeds}"] if seeds is not None else [])]
    try:
        plan = load_sweep(scenario, overrides, search or [], None if cases is None else cases.split(","))
        if write_best is not None:
            if plan.search is None:
                text = "must be given for a search only, which this sweep is not; leave it out, or add --search"
                refuse(f"--write-best: {text}")
            require_writable(write_best)

        with ending_by_signals():
            where: dict[str, Any] = {"inline": inline, "address": address, "parallel": parallel}
            succeeded = carry_out(plan, out=out, write_best=write_best, observers=watchers, **where)
    except ScenarioError as error:  # a search may also find, after it started, that values do not fit together
        refuse(error)
    raise typer.Exit(0 if succeeded else 1)
