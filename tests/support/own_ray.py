"""A program of its own: runs a scenario on a local Ray of its own, which ends in the way that is named."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from conftest import digits

from raysim.cli.command import ending_by_signals
from raysim.engine.progress import Progress
from raysim.runs.run import run
from raysim.scenario import parse_scenario

HOW, OUT = sys.argv[1], Path(sys.argv[2])


def end(progress: Progress) -> None:
    """Ends what is to end: at the last round the GCS, else this run."""
    if not (OUT / "mode").exists():
        from ray._raylet import AuthenticationMode, get_authentication_mode

        (OUT / "mode").write_text("token" if get_authentication_mode() == AuthenticationMode.TOKEN else "another")
    if progress.round < 5:
        return
    if HOW == "gcs" and progress.round == progress.rounds:
        subprocess.run(["pkill", "-KILL", "-P", str(os.getpid()), "gcs_server"], check=True)
    elif HOW == "SIGTERM":
        os.kill(os.getpid(), signal.SIGTERM)
    elif HOW == "SIGHUP to all":  # as the kernel does when the terminal is gone
        os.killpg(0, signal.SIGHUP)


rounds = 10 if HOW == "gcs" else 100_000
with ending_by_signals():
    run(parse_scenario(digits(run__rounds=rounds)), out=OUT / "runs", observers=[end])
