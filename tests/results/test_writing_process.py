"""Whether the process that holds a run still lives, as a reader of its folder sees it."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import command

from results import Run, info, this_process, write_json
from results.info import state


@pytest.fixture
def other() -> Any:
    """Another process, and how it describes itself."""
    code = "import json, sys, results; print(json.dumps(results.this_process()), flush=True); sys.stdin.read()"
    running = subprocess.Popen(
        [sys.executable, "-c", code], stdin=-1, stdout=-1, text=True, cwd=Path(__file__).parents[2]
    )
    assert running.stdout is not None
    yield running, json.loads(running.stdout.readline())
    running.kill()
    running.wait()
    for pipe in (running.stdin, running.stdout):
        assert pipe is not None
        pipe.close()


def test_a_process_is_alive_until_it_ends_even_before_its_parent_knows(other: Any) -> None:
    running, description = other
    assert description["pid"] == running.pid
    assert state(description) == "alive"
    running.kill()
    os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
    assert state(description) == "gone"
    running.wait()
    assert state(description) == "gone"


def test_a_pid_that_was_given_again_is_not_taken_for_the_process() -> None:
    here = this_process()
    assert state(here) == "alive"
    assert state({**here, "started": here["started"] - 1}) == "gone"
    assert state({}) == state(None) == "unknown"


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ({"boot": "b1", "pids": "pid:[1]"}, "gone"),
        ({"boot": "b0", "pids": "pid:[1]"}, "unknown"),  # another machine, or this one before it was started again
        ({"boot": "b1", "pids": "pid:[7]"}, "unknown"),  # a container of this machine
        ({}, "unknown"),
    ],
)
def test_a_number_says_something_only_where_it_counts(
    there: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(info, "_place", lambda: {"boot": "b1", "pids": "pid:[1]"})
    assert state({"host": socket.gethostname(), "pid": 2**30, "started": 1, **there}) == expected


def test_a_run_whose_process_is_gone_was_killed(tmp_path: Path) -> None:
    folder = tmp_path / "my runs" / ("a" * 70)  # with which the command to go on is longer than a line of the terminal
    write_json(folder, {"run": "a", "status": "running", "holder": {**this_process(), "pid": 2**30}})
    assert Run(folder).standing == "killed"
    resume = f"raysim resume '{folder}'"
    shown, compared = command("show", folder).stdout, command("compare", folder)
    assert "killed" in shown and "".join(resume.split()) in "".join(shown.split())  # lines are wrapped
    assert compared.exit_code == 2 and (Run(folder).note or "").endswith(f"`{resume}`")
    assert "killed, its process is gone, last written 20" in compared.stderr and resume in compared.stderr


def test_of_a_run_elsewhere_only_the_machine_is_told(tmp_path: Path) -> None:
    write_json(tmp_path, {"run": "a", "status": "running", "holder": {"host": "far", "pid": 12, "started": 3}})
    run = Run(tmp_path)
    assert run.standing == "running"
    assert (run.note or "").startswith("on far (pid 12), cannot tell from here, last written 20")
    os.utime(tmp_path / "run.json", (0, 0))
    assert run.standing == "killed?"
    assert (run.note or "").endswith(f"UTC; if so, continue with `raysim resume {tmp_path}`")
    write_json(tmp_path, {"run": "a", "status": "interrupted", "holder": {**this_process(), "pid": 2**30}})
    assert (Run(tmp_path).standing, Run(tmp_path).note) == ("interrupted", None)
