"""Commands that use what a run has left: `generate` and `log`."""

from typing import Annotated

import typer

from actors.fault import describe
from raysim.cli.bad_input import refusing_wrong_runs
from raysim.cli.options import RunFolder, RunFolders, named_observers
from raysim.parts.errors import BadValue
from raysim.runs.generate import generate as go_on
from raysim.runs.generate import keep
from raysim.runs.observing import retell
from raysim.runs.result import Result
from results import load
from results.texts import count


def generate(
    run: RunFolder,
    prompt: Annotated[str, typer.Argument(help="The text to go on with.")],
    tokens: Annotated[int, typer.Option(min=1, help="Most tokens that are added.")] = 100,
    temperature: Annotated[
        float, typer.Option(min=0, help="0: the most probable token each time; 1: drawn by their probabilities.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="The seed of the draws.")] = 0,
) -> None:
    """Let the final language model of a run go on with a text. It is printed, and added to generated.txt there."""
    with refusing_wrong_runs(BadValue, FileNotFoundError):
        text = go_on(Result(run), prompt, tokens, temperature, seed)
    typer.echo(text)
    keep(run, text)


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
