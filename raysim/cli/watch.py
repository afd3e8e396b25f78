"""The commands `ls`, `watch` and `serve`: the runs in a folder, and their progress, in a terminal and in a
browser."""

import socket
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from raysim.cli.command import FolderOfRuns, refuse, refusing_wrong_runs
from results.load import Folder, readable
from results.reader import NoRuns
from results.render import column_widths, fitted
from results.texts import Terminal
from results.views import View, lines


def ls(folder: FolderOfRuns = Path("runs")) -> None:
    """List the runs in a folder, runs/ by default, with a line for each sweep: how far they are, and how good."""
    with refusing_wrong_runs():
        views = Folder(folder).look()
        readable(views)
    console = Terminal()
    console.print(shown(views, console.width))


def watch(
    folder: FolderOfRuns = Path("runs"),
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 2.0,
) -> None:
    """Show the runs in a folder, or one run, until they end: how far they are, how good, and what they wait for.

    In a terminal, it waits for the first run of a folder that holds none."""
    console, runs = Terminal(), Folder(folder)
    with refusing_wrong_runs():
        if not console.is_interactive:
            console.print(_watched(readable(runs.look()), console.width))
            return
        try:
            with Live(console=console, auto_refresh=False) as live:
                while True:
                    try:
                        views = readable(runs.look())
                        live.update(_watched(views, console.width), refresh=True)
                        if not any(one.status.goes_on for one in views):
                            return
                    except NoRuns:
                        live.update(Text(f"waiting for a first run in {folder}; Ctrl-C stops"), refresh=True)
                    time.sleep(every)
        except KeyboardInterrupt:  # the runs continue
            raise typer.Exit(130) from None


def shown(views: Sequence[View], width: int) -> RenderableType:
    """Returns a table of runs, and below it why they ended. Where it is wide, what a run is stands below its name."""
    import pandas as pd

    heads, rows, reasons = lines(views)
    frame = pd.DataFrame(rows, columns=list(heads))
    frame, words = frame.loc[:, (frame != "").any()], 3
    if "what" in frame and sum(column_widths(frame, 3)[0]) > width:
        below = partial(fill, width=max(map(len, frame["run"])), initial_indent="\n  ", subsequent_indent="  ")
        frame, words = frame.assign(run=frame["run"] + frame["what"].map(below)).drop(columns="what"), 2
    return Group(fitted(frame, words, width), *(Text(line, "dim") for line in reasons))


def _watched(views: Sequence[View], width: int) -> RenderableType:
    """Returns the same, and what runs wait for."""
    waiting = (Text(f"{one.path}: {one.remark}", "dim") for one in views if one.status.goes_on)
    return Group(shown(views, width), *waiting)


def serve(
    folder: FolderOfRuns = Path("runs"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any free one.")] = 8470,
) -> None:
    """Show the runs in a folder, runs/ by default, in a browser: a list, and curves side by side."""
    from aiohttp import web

    from results.serve import application

    if not folder.is_dir():
        refuse(f"{folder}: must be a folder of runs, but there is none; give another one, or make it")
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        why = f"port {port}: must be free to listen on, got {error.strerror or error}"
        refuse(f"{why}; take another --port, or 0 for any")
    typer.echo(f"http://127.0.0.1:{listener.getsockname()[1]}/ shows the runs in {folder} until Ctrl-C")
    web.run_app(application(folder), sock=listener, print=None, access_log=None)
