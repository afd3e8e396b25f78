"""Where the command line starts: `app` holds all commands, and `main` is the program `raysim`.

The modules of commands import at their top what `import raysim` loads anyway. What loads Ray, torch, pandas or a web
server is imported when a command is called, so that `--help` does not wait for it.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from actors import MissingResources
from raysim.cli.analyse import compare, export, plot, report, show
from raysim.cli.check import check, schema, test
from raysim.cli.command import tell
from raysim.cli.doctor import doctor
from raysim.cli.new import new, scenarios
from raysim.cli.parts import list_parts
from raysim.cli.run import fork, resume, run
from raysim.cli.sweep import sweep
from raysim.cli.watch import ls, serve, watch
from raysim.parts.errors import CannotGoOn, RunFailed, ScenarioError
from raysim.version import __version__
from results import NotARun
from results.disk import CannotWrite
from results.texts import harmless

app = typer.Typer(
    help="Simulates federated learning at scale, in virtual time.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_COMMANDS = (
    *(check, doctor, run, sweep, resume, fork, ls, watch, serve, show, compare, report, plot),
    *(export, new, test, schema),
)
app.command()(scenarios)
app.command("list")(list_parts)
for _command in _COMMANDS:
    app.command()(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"raysim {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    del version  # the callback has printed it


def main() -> None:
    """Runs the command line.

    Exit codes: 0, 1 for a run that failed, 2 for bad input, 3 for a run that diverged, 128 plus the number of the
    signal that ended it.
    """
    if "" not in sys.path:  # so that a user's own algorithm is found in the current folder, as with `python -m raysim`
        sys.path.insert(0, str(Path.cwd()))
    try:
        app()
    except (CannotGoOn, CannotWrite, MissingResources, NotARun, ScenarioError) as error:
        print(harmless(str(error)), file=sys.stderr)
        sys.exit(2)
    except RunFailed as error:
        tell(error)
        sys.exit(1)
