"""The command line as tests call it."""

import os
import subprocess
import sys
from pathlib import Path

from conftest import PYTHONPATH, ROOT, Raw
from ruamel.yaml import YAML
from typer.testing import CliRunner
from typer.testing import Result as Answer

from raysim.cli.app import app

QUICKSTART = ROOT / "scenarios" / "quickstart.yaml"


def command(*arguments: object) -> Answer:
    """What the command line answers in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """What it answers in a process of its own, which finds the tests' algorithms."""
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    line = [sys.executable, "-m", "raysim", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, env=environment, check=False)


def write(folder: Path, raw: Raw, name: str = "scenario") -> Path:
    """The path of a scenario file."""
    path = folder / f"{name}.yaml"
    YAML().dump(raw, path)
    return path
