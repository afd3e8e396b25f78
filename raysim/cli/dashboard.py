"""The command `dashboard`: raysim's dashboard for Grafana."""

from pathlib import Path
from typing import Annotated

import typer

from raysim.cli.bad_input import refuse
from results.disk import writing

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
    file = folder / "raysim.json"
    with writing(file):
        file.write_text(DASHBOARD.read_text(encoding="utf-8"), encoding="utf-8")
    typer.echo(file)
