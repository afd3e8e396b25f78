"""The command `serve`: runs in a browser."""

import socket
from pathlib import Path
from typing import Annotated

import typer

from raysim.cli.ending import refuse
from raysim.cli.options import FolderOfRuns


def serve(
    folder: FolderOfRuns = Path("runs"),
    host: Annotated[
        str, typer.Option(help="Where to listen; on any but this machine's own address, readers need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8470,
) -> None:
    """Show the runs in a folder, runs/ by default, in a browser: a list, and curves side by side."""
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
