"""How runs and sweeps end that somebody or something ends: signals, kills, and cases that fail."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import command, write
from conftest import PYTHONPATH, Raw, digits, quadratic
from waiting import PATIENT_S, until

from results import open_run

ENDLESS = {  # rows are written with each checkpoint
    "run__rounds": 1_000_000,
    "run__evaluate_every": 1_000_000,
    "run__checkpoint__every_rounds": 20,
}


def start(*arguments: object) -> subprocess.Popen[str]:
    """The command line in a process of its own, and in a group of its own with its children."""
    line = [sys.executable, "-m", "raysim", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(line, text=True, env=environment, start_new_session=True, **pipes)


def once_under_way(running: subprocess.Popen[str], out: Path, number: int = 1) -> list[Path]:
    """The folders of the runs below a folder, once so many have written rows."""

    def folders() -> set[Path]:
        return {file.parent.parent for file in out.rglob("updates/*.parquet")}

    until(lambda: len(folders()) >= number, running)
    return sorted(folders())


def check_interrupted(folder: Path) -> None:
    info = open_run(folder).info
    assert info["status"] == "interrupted"
    assert len(open_run(folder).table("updates")) == info["totals"]["dispatched"] > 0


@pytest.mark.parametrize(
    "number", [signal.SIGINT, *(pytest.param(n, marks=pytest.mark.slow) for n in (signal.SIGTERM, signal.SIGHUP))]
)
def test_a_signal_ends_a_run_with_all_rows_and_its_number(number: int, tmp_path: Path) -> None:
    running = start("run", write(tmp_path, digits(**ENDLESS)), "--inline", "--out", tmp_path / "runs")
    (folder,) = once_under_way(running, tmp_path / "runs")
    running.send_signal(number)
    answer, errors = running.communicate(timeout=PATIENT_S)
    assert (running.returncode, "Traceback" in errors) == (128 + number, False)
    assert answer.splitlines()[-1] == f"{folder.name} was interrupted; `raysim resume {folder}` continues it"
    check_interrupted(folder)


@pytest.mark.parametrize("whole_group", [False, True])
@pytest.mark.chaos
def test_a_signal_ends_a_sweep_and_all_its_runs(whole_group: bool, tmp_path: Path) -> None:
    path = write(tmp_path, digits(**ENDLESS) | {"sweep": {"grid": {"seed": [0, 1, 2]}}})
    running = start("sweep", path, "--inline", "--parallel", 2, "--out", tmp_path / "runs")
    folders = once_under_way(running, tmp_path / "runs", 2)
    os.killpg(running.pid, signal.SIGTERM) if whole_group else running.terminate()
    answer, errors = running.communicate(timeout=PATIENT_S)
    assert (running.returncode, "Traceback" in errors) == (143, False)
    assert answer.splitlines()[-1] == "the sweep was interrupted; the same command continues it"
    assert sorted(file.parent for file in (tmp_path / "runs").rglob("run.json")) == folders
    for folder in folders:
        check_interrupted(folder)


@pytest.mark.chaos
def test_a_sweep_ends_when_nobody_reads_what_it_prints(tmp_path: Path) -> None:
    """As below `| head`. All of its runs end, not only the one whose progress could not be printed."""
    path = write(tmp_path, digits(**ENDLESS) | {"sweep": {"grid": {"seed": [0, 1]}}})
    with start("sweep", path, "--inline", "--parallel", 2, "--out", tmp_path / "runs") as running:
        assert running.stdout is not None
        running.stdout.close()
        try:
            assert running.wait(timeout=PATIENT_S) > 0
        finally:
            running.kill()
    runs = [open_run(file.parent) for file in (tmp_path / "runs").rglob("run.json")]
    assert runs and {run.standing for run in runs} <= {"interrupted", "failed"}


@pytest.mark.chaos
def test_a_second_signal_ends_at_once_and_the_run_shows_as_killed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    raw = digits(**ENDLESS, algorithm={"name": "toys_endings:Stuck", "mark": str(mark)})
    running = start("run", write(tmp_path, raw), "--inline", "--out", tmp_path / "runs")
    until(mark.exists, running)
    running.terminate()
    time.sleep(1.0)
    assert running.poll() is None
    running.terminate()
    running.communicate(timeout=PATIENT_S)
    assert running.returncode == -signal.SIGTERM
    (folder,) = (tmp_path / "runs").iterdir()
    assert open_run(folder).standing == "killed"


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """As below nohup."""
    path = write(tmp_path, quadratic([1.0, 3.0], "fedavg", {"dispatch": {"per_round": 2}}, 2))
    code = (
        "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from raysim.cli.command import ending_by_signals\n"
        "with ending_by_signals(): signal.raise_signal(signal.SIGHUP); print('goes on')"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "goes on\n"
    before = signal.getsignal(signal.SIGTERM)
    assert command("run", path, "--inline", "--out", tmp_path / "runs").exit_code == 0
    assert signal.getsignal(signal.SIGTERM) is before  # the command put it back


# --- cases that fail --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_case_that_fails_in_any_way_stops_no_other(tmp_path: Path) -> None:
    """It is named at the end with its reason, and its run.json says that it failed."""
    reasons = {how: f"{how}: 3" for how in ("SystemExit", "OSError", "KeyError")}
    reasons |= {"die": "its process ended with exit code 7", "kill": "its process ended with signal SIGKILL"}
    cases: Raw = {how: {"algorithm": {"name": "toys_endings:Ends", "how": how}} for how in reasons}
    path = write(tmp_path, digits(run__rounds=2) | {"sweep": {"cases": {**cases, "good": {"local.lr": 0.1}}}})
    answer = command("sweep", path, "--inline", "--parallel", 1, "--out", tmp_path / "runs")
    assert answer.exit_code == 1
    assert "6 runs: 5 failed, 1 finished" in answer.stdout
    told = " ".join(answer.stdout[answer.stdout.index("6 runs:") :].split())
    infos = {info["name"]: info for info in map(json.loads, (f.read_text() for f in tmp_path.rglob("run.json")))}
    assert infos.pop("digits-good")["status"] == "finished"
    for how, reason in reasons.items():
        assert reason in told
        assert (infos[f"digits-{how}"]["status"], reason in infos[f"digits-{how}"]["error"]) == ("failed", True)
