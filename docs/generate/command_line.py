"""Reference of the command line: what each command prints with --help."""

from __future__ import annotations

from typing import Any

import typer.main
from typer.testing import CliRunner

from raysim.cli.app import app

WIDTH = 84  # columns that fit a page


def commands() -> str:
    """A section for each command."""
    group: Any = typer.main.get_command(app)
    return "\n\n".join(f"## `raysim {name}`\n\n```text\n{_help(name)}\n```" for name in group.commands)


def _help(name: str) -> str:
    runner = CliRunner(env={"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"})
    answer = runner.invoke(app, [name, "--help"], prog_name="raysim", catch_exceptions=False)
    return "\n".join(line.rstrip() for line in answer.stdout.strip("\n").splitlines())
