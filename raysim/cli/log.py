"""The command `log`, which sends runs that are over to a tracker of experiments."""

from typing import Annotated

import typer

from actors.fault import describe
from raysim.cli.bad_input import refusing_wrong_runs
from raysim.cli.options import RunFolders, named_observers
from raysim.runs.observing import retell
from results import load
from results.texts import count


def log(
    runs: RunFolders,
    to: Annotated[
        list[str],
        typer.Option(
            "--to", metavar="NAME|MODULE:CLASS", help="tensorboard, wandb, mlflow or trackio; can be repeated."
        ),
    ],
) -> None:
    """Send runs to trackers, as --log does while they go on; what a tracker has of a run already is not sent again."""
    trackers = named_observers(None, to)
    with refusing_wrong_runs():
        found = load(*runs)
    failed = 0
    for run in found.runs:
        for tracker in trackers:
            try:
                retell(run, tracker.for_run())
            except Exception as error:  # whatever a tracker's library raises, the next run is sent
                failed += 1
                typer.echo(f"{run.folder}: {tracker.title}: {describe(error)}", err=True)
    if failed:
        raise typer.Exit(1)
    typer.echo(f"{count(len(found), 'run')} sent to {', '.join(tracker.title for tracker in trackers)}")
