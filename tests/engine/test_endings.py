"""How runs end on Ray, by signals and where processes stop answering; and the token that a local Ray wants."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import PYTHONPATH
from toys_jobs import Adder, Attach, Sleep, Telling
from waiting import PATIENT_S

from actors import Group, JobFailed
from actors.worker import Pulse
from raysim.cli.ending import ENDING, ending_by_signals
from results import open_run

ray_test = pytest.mark.usefixtures("ray_session")


def stat(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def test_silence_is_what_passes_while_somebody_listens_and_is_told_once() -> None:
    answers: list[bool] = []
    pulse = Pulse("client-1", lambda: 1, lambda asked: bool(answers))
    warnings = [pulse.beat(5.0, 100.0) for _ in range(15)]
    assert warnings.count(None) == 14
    assert "client-1 has not answered for 50 s; it is given up after 100 s" in warnings
    pulse.beat(1e6, 100.0)  # the caller itself stood still
    assert pulse.silent_s == 80.0
    answers.append(True)
    assert (pulse.beat(5.0, 100.0), pulse.silent_s) == (None, 0.0)


@pytest.mark.ray
@ray_test
@pytest.mark.parametrize("where", ["job", "set-up"])
@pytest.mark.chaos
def test_a_worker_that_stops_is_replaced(where: str) -> None:
    """Not one that only works for longer than the patience."""
    import ray

    from actors.actors import Actors
    from actors.cluster import RayPool
    from actors.placement import Placement

    pool = RayPool(Actors(f"test-{time.time_ns()}", Placement()), patience_s=10.0)
    try:
        pool.start(Group("client", Adder, 1))
        pool.set_up({"client": Attach(1)})
        first = pool._crews["client"].workers[0]
        pid = ray.get(first.actor.__ray_call__.remote(lambda self: os.getpid()))
        if where == "job":
            long = pool.submit("client", Sleep(13.0))
            while not long.done:
                pool.wait()
            assert long.attempts == 0
            pool.warnings.clear()  # on a busy machine it may be slow to answer
            job = pool.submit("client", Sleep(0.1))
            os.kill(pid, signal.SIGSTOP)
            while not job.done:
                pool.wait()
        else:
            os.kill(pid, signal.SIGSTOP)
            pool.set_up({"client": Attach(2)})
        assert pool._crews["client"].workers[0] is not first
        assert len(pool.warnings) == 1 and pool.warnings[0].startswith("client-0 has not answered for ")
    finally:
        os.kill(pid, signal.SIGKILL) if stat(pid) == "T" else None
        pool.close()


@pytest.mark.ray
@ray_test
@pytest.mark.chaos
def test_a_scheduler_that_stops_ends_the_run(tmp_path: Path) -> None:
    import ray
    from run_actors import actor_of

    from actors.placement import Demand, Placement
    from actors.workforce import Terms, Workforce

    name = f"test-{time.time_ns()}"
    steps = Workforce(Terms(Demand({}), patience_s=30.0), Placement()).run(Telling(tmp_path / "note", "sleep"), name)
    assert next(steps) == 1
    scheduler = actor_of(name, "scheduler")
    pid = ray.get(scheduler.__ray_call__.remote(lambda self: os.getpid()))
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(JobFailed, match=r"scheduler: it has not answered for \d+ s"):
        list(steps)


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
