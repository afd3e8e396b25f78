"""The command `dashboard`: raysim's dashboard for Grafana."""

import os
from pathlib import Path
from typing import Annotated

import typer

from raysim.cli.bad_input import refuse
from results.disk import replacing

WHERE = Path("/tmp/ray/session_latest/metrics/grafana/dashboards")  # Ray's files for Grafana name this folder

DASHBOARD = Path(__file__).with_name("grafana.json")  # as Grafana's JSON model has it


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
