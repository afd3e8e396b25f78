"""The commands `generate`, which lets a run's language model go on with a text, and `export`."""

from pathlib import Path
from typing import Annotated

import typer

from raysim.cli.ending import refusing_wrong_runs
from raysim.cli.options import RunFolder
from raysim.parts.errors import BadValue
from raysim.runs.generate import generate as go_on
from raysim.runs.generate import keep
from raysim.runs.result import Result


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


def export(
    run: RunFolder,
    to: Annotated[str, typer.Option("--to", help="hf, peft, safetensors, onnx or torch-export.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="The folder; by default one of that name in the run's folder.")
    ] = None,
    peer: Annotated[int | None, typer.Option(help="The number of a peer.", show_default=False)] = None,
    client: Annotated[
        int | None, typer.Option(help="The number of a client with a saved model of its own.", show_default=False)
    ] = None,
    best: Annotated[bool, typer.Option("--best", help="The best model, which run.keep_best keeps.")] = False,
) -> None:
    """Write the final model for other programs: transformers, peft, torch or ONNX."""
    with refusing_wrong_runs(ValueError, FileNotFoundError):
        folder = Result(run).export(to, out, peer, client=client, best=best)
    typer.echo(f"{folder}: {', '.join(sorted(one.name for one in folder.iterdir()))}")
