"""The command `dashboard`: raysim's dashboard for Grafana."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

WHERE = Path("/tmp/ray/session_latest/metrics/grafana/dashboards")  # Ray's files for Grafana name this folder


def dashboard(
    folder: Annotated[
        Path, typer.Argument(help="A folder of dashboards that Grafana reads; by default that of Ray's set-up.")
    ] = WHERE,
) -> None:
    """Write the dashboard of runs for Grafana, as the file raysim.json."""
    from raysim.cli.bad_input import refuse
    from raysim.cli.grafana import FILE
    from raysim.cli.grafana import dashboard as made
    from results.disk import writing

    if not folder.is_dir():
        hint = "Ray makes it on the head node when it starts there" if folder == WHERE else "make it"
        refuse([ValueError(f"dashboard: must be given a folder that is there, got {folder}; {hint}")])
    file = folder / FILE
    with writing(file):
        file.write_text(json.dumps(made(), indent=2) + "\n", encoding="utf-8")
    typer.echo(file)
