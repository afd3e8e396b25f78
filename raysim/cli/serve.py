"""The commands `serve` and `dashboard`: runs in a browser, by a live page or by Grafana."""

import os
import socket
from pathlib import Path
from typing import Annotated

import typer

from raysim.cli.bad_input import refuse
from raysim.cli.options import FolderOfRuns
from results.disk import replacing

WHERE = Path("/tmp/ray/session_latest/metrics/grafana/dashboards")  # Ray's files for Grafana name this folder

DASHBOARD = Path(__file__).with_name("grafana.json")  # as Grafana's JSON model has it


def serve(
    folder: FolderOfRuns = Path("runs"),
    host: Annotated[
        str, typer.Option(help="Where to listen; on any but this machine's own address, readers need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8470,
) -> None:
    """Show the runs in a folder, runs/ by default, in a browser: lists, curves side by side, and who works."""
    from aiohttp import web

    from results.serve import application
    from results.serve.guard import Guard

    if not folder.is_dir():
        refuse(f"{folder}: must be a folder of runs, but there is none; give another one, or make it")
    guard = Guard.listening(host)
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        why = f"port {port} of {host}: must be free to listen on, got {error.strerror or error}"
        refuse(f"{why}; take another --port, or 0 for any")
    name = socket.gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    token = f"?token={guard.token}" if guard.token else ""
    typer.echo(f"http://{name}:{listener.getsockname()[1]}/{token} shows the runs in {folder} until Ctrl-C")
    web.run_app(application(folder, guard), sock=listener, print=None, access_log=None)


def dashboard(
    folder: Annotated[
        Path, typer.Argument(help="A folder of dashboards that Grafana reads; by default that of Ray's set-up.")
    ] = WHERE,
) -> None:
    """Write the dashboard of runs for Grafana, as the file raysim.json."""
    if not folder.is_dir():
        hint = "Ray makes it on the head node when it starts there" if folder == WHERE else "make it"
        refuse(f"dashboard: must be given a folder that is there, got {folder}; {hint}")
    if folder.stat().st_uid != os.getuid():
        refuse(f"dashboard: must be given a folder of your own, got {folder} of another user; name another folder")
    file = folder / "raysim.json"
    with replacing(file) as hidden:  # which follows no link that somebody else has put there
        hidden.write_text(DASHBOARD.read_text(encoding="utf-8"), encoding="utf-8")
    typer.echo(file)
