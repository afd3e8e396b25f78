"""Waiting for what must happen, for as long as that may take where the machine is busy with other work."""

import subprocess
import time
from collections.abc import Callable
from typing import Any

PATIENT_S = 300.0  # after which it will not happen any more


def until(condition: Callable[[], Any], run: "subprocess.Popen[str] | None" = None) -> None:
    """Waits for a condition. run: a process that must not end meanwhile."""
    end = time.monotonic() + PATIENT_S
    while not condition():
        assert run is None or run.poll() is None, run.communicate()
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)
