"""Where the command line starts: `app` holds all commands, and `main` is the program `raysim`.

The modules of commands import at their top what `import raysim` loads anyway. What loads Ray, torch, pandas or a web
server is imported when a command is called, so that `--help` does not wait for it.
"""

import errno
import os
import sys
import threading
import time
from pathlib import Path
from typing import Annotated

import typer

from actors import MissingResources
from raysim.cli.afterwards import generate, log
from raysim.cli.analyse import compare, report, show
from raysim.cli.bad_input import tell
from raysim.cli.check import check, schema
from raysim.cli.columns import columns
from raysim.cli.dashboard import dashboard
from raysim.cli.doctor import doctor
from raysim.cli.ls import ls
from raysim.cli.new import new
from raysim.cli.partition import partition
from raysim.cli.parts import list_parts
from raysim.cli.plot import plot
from raysim.cli.run import end, fork, resume, run
from raysim.cli.scenarios import scenarios
from raysim.cli.serve import serve
from raysim.cli.sweep import sweep
from raysim.cli.test import test
from raysim.cli.watch import watch
from raysim.parts.errors import CannotGoOn, RunFailed, ScenarioError
from raysim.startup import HiddenPackage, require_own_packages
from raysim.version import __version__
from results import NotARun
from results.disk import CannotWrite
from results.texts import harmless

PATIENCE_S = 10.0  # seconds after a command in which threads may end

app = typer.Typer(
    help="Simulates federated learning at scale, in virtual time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_COMMANDS = (
    *(columns, check, partition, doctor, run, sweep, resume, fork, end, ls, watch, serve, show, compare, report, plot),
    *(generate, log, new, test, schema, dashboard),
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
    code = _carried_out()
    threading.Thread(target=_end_without_threads, args=(code,), daemon=True).start()
    sys.exit(code)


def _carried_out() -> int:
    """Carries out the command, and returns its exit code."""
    if "" not in sys.path:  # so that a user's own algorithm is found in the current folder, as with `python -m raysim`
        sys.path.insert(0, str(Path.cwd()))
    if os.environ.get("COLUMNS") == "0":  # as some schedulers have it; tables would be empty
        del os.environ["COLUMNS"]
    try:
        require_own_packages()
        try:
            app()
        finally:
            sys.stdout.flush() if sys.stdout else None
    except SystemExit as end:
        if isinstance(end.code, str):  # which Python prints
            raise
        return end.code or 0
    except (CannotGoOn, CannotWrite, HiddenPackage, MissingResources, NotARun, ScenarioError) as error:
        print(harmless(str(error)), file=sys.stderr)
        return 2
    except RunFailed as error:
        tell(error)
        return 1
    except ValueError:
        if sys.stdout is None or not sys.stdout.closed:
            raise
        told = "standard output: was closed by code of yours; `raysim show` tells what became of a run"
        print(told, file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            print(f"{harmless(str(error))}; allow more open files, with `ulimit -n`", file=sys.stderr)
            return 1
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        print(f"standard output: cannot be written ({error.strerror}); free some space there", file=sys.stderr)
        os._exit(1)  # the interpreter would try to write the rest once more
    return 0


def _end_without_threads(code: int) -> None:
    """Ends the process some time after its command, if threads that hosted code has started never end."""
    time.sleep(PATIENCE_S)
    main_thread = threading.main_thread()
    left = [thread.name for thread in threading.enumerate() if not thread.daemon and thread is not main_thread]
    if left and not main_thread.is_alive():
        names = harmless(", ".join(left))
        print(f"the command is over, and ends without threads that do not: {names}", file=sys.stderr, flush=True)
        os._exit(code)
