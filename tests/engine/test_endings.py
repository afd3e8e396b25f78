"""How runs end on Ray, by signals; and the token that a local Ray wants."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PYTHONPATH
from waiting import PATIENT_S

from raysim.cli.command import ENDING, ending_by_signals
from results import open_run


def test_a_signal_while_ray_starts_ends_the_command_as_any_other() -> None:
    """Ray has put handlers of its own in place by then. A second signal would end the process at once."""
    from actors.connection import _own_signals

    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        with pytest.raises(SystemExit) as ended, ending_by_signals(), _own_signals():
            signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
            signal.raise_signal(signal.SIGTERM)
        assert ended.value.code == 128 + signal.SIGTERM
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.ray
@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP to all", "gcs"])
@pytest.mark.chaos
def test_a_run_on_a_ray_of_its_own_ends_as_it_should(how: str, tmp_path: Path) -> None:
    """By a signal, or finished although the GCS is lost when all work is done. That Ray wants a token."""
    line = [sys.executable, str(Path(__file__).parents[1] / "support" / "own_ray.py"), how, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": PYTHONPATH}
    environment.pop("RAY_AUTH_MODE", None)
    ended = subprocess.run(
        line, capture_output=True, text=True, env=environment, timeout=PATIENT_S, start_new_session=True, check=False
    )
    expected = {"SIGTERM": (143, "interrupted"), "SIGHUP to all": (129, "interrupted"), "gcs": (0, "finished")}
    (folder,) = (tmp_path / "runs").iterdir()
    run = open_run(folder)
    assert (ended.returncode, run.info["status"]) == expected[how], ended.stderr
    assert len(run.table("updates")) == run.info["totals"]["dispatched"] > 0
    assert (tmp_path / "mode").read_text() == "token"
