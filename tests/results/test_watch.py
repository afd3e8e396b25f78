"""Runs are listed and watched while they go on, on disks and on stores."""

import io
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from reported_runs import Rows, evaluation, made, step
from rich.console import Console

from results import this_process, write_json
from results.reader import Run

HERE = {"status": "running", "holder": this_process()}


def rows(*accuracies: float) -> Rows:
    number = len(accuracies)
    return {
        "evaluations": [evaluation(place, value) for place, value in enumerate(accuracies)],
        "steps": [step(place, 10, place + 1.0) for place in range(number)],
    }


def several(folder: Path) -> None:
    """A sweep of three runs, one of which goes on and one of which failed, and a run by itself."""
    of = {"run": {"rounds": 4}}
    for seed, info in enumerate([{}, HERE, {"status": "failed", "error": "client 3: no data\nTraceback"}]):
        made(folder / "sweep" / f"s-{seed}", rows(0.1, 0.5 + seed / 10), {"seed": seed, **of}, **info)
    made(folder / "alone", rows(0.25), {"algorithm": {"name": "fedbuff"}, **of})


def told(*words: object) -> str:
    answer = command(*words)
    assert answer.exit_code == 0, answer.output
    return "\n".join(" ".join(line.split()) for line in answer.stdout.splitlines())


def test_a_list_has_a_line_for_each_sweep_and_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    several(tmp_path)
    assert told("ls", tmp_path).splitlines() == [
        "run what status rounds t accuracy",
        "alone fedbuff, seed=0 finished 1/4 0 0.25",
        "sweep/ 3 runs 1 finished, 1 running, 1 failed 2 1 0.5 to 0.7",
    ]
    lines = told("show", tmp_path / "sweep").splitlines()
    assert lines == told("ls", tmp_path / "sweep").splitlines()
    assert lines[1] == "s-0 made, seed=0 finished 2/4 1 0.5"
    assert lines[3:] == ["s-2 made, seed=2 failed 2/4 1 0.7", "s-2: client 3: no data"]
    assert told("ls", tmp_path / "alone").splitlines()[1].startswith(". made finished")
    assert command("ls", tmp_path / "nothing").exit_code == 2


def test_in_a_narrow_terminal_what_a_run_is_stands_below_its_name(tmp_path: Path) -> None:
    for name, lr in (("a-run-with-a-name-of-many-letters-20261128-175713", 0.1), ("b", 0.25)):
        made(tmp_path / name, rows(0.5), {"local": {"lr": lr, "rate_of_decay": lr}, "run": {"rounds": 4}})
    shown = command("ls", tmp_path).stdout.splitlines()
    assert [line.rstrip() for line in shown[1:5:2]] == [
        "a-run-with-a-name-of-many-letters-20261128-175713  finished     1/4  0       0.5",
        "b                                                  finished     1/4  0       0.5",
    ]
    assert [line.strip() for line in shown[2:5:2]] == ["lr=0.1", "lr=0.25"]


def test_a_run_that_goes_on_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folder = made(tmp_path / "r", rows(0.1, 0.2, 0.8), {"run": {"rounds": 9}}, **HERE)
    _, line, remark = told("watch", folder).splitlines()
    assert line == ". made running 3/9 2 0.8"
    assert remark.startswith(".: waits for round 4, ") and remark.endswith("since it wrote; a round takes 1 s")


def test_several_runs_are_watched_until_the_last_one_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several(tmp_path)
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        folder = tmp_path / "sweep" / "s-1"
        write_json(folder, {**Run(folder).info, "status": "finished"})

    screen = Console(file=io.StringIO(), force_terminal=True, width=200, height=20)
    monkeypatch.setattr("raysim.cli.watch.Terminal", lambda: screen)
    monkeypatch.setattr("raysim.cli.watch.time.sleep", sleep)
    assert command("watch", tmp_path, "--every", "1.5").exit_code == 0
    assert looks == [1.5]
    shown = screen.file.getvalue()
    assert "1 finished, 1 running, 1 failed" in shown and "2 finished, 1 failed" in shown


def test_a_first_run_is_waited_for_in_a_terminal_and_asked_for_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").mkdir()
    for words in ((tmp_path / "runs",), (tmp_path / "none",)):
        answer = command("watch", *words)
        assert answer.exit_code == 2
        assert answer.stderr.endswith("; give another one, or make a first run with `raysim run`\n")
    screen = Console(file=io.StringIO(), force_terminal=True, width=300, height=5)
    monkeypatch.setattr("raysim.cli.watch.Terminal", lambda: screen)
    monkeypatch.setattr("raysim.cli.watch.time.sleep", lambda seconds: made(tmp_path / "runs" / "r", rows(0.1, 0.5)))
    assert command("watch", tmp_path / "runs").exit_code == 0
    waited, _, shown = screen.file.getvalue().partition("; Ctrl-C stops")
    assert "waiting for a first run in" in waited and "accuracy" in shown


def test_runs_on_a_store_are_listed_and_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from upath import UPath

    monkeypatch.setenv("COLUMNS", "200")
    folder: Any = UPath("memory://watched/runs")
    (folder / "r").mkdir(parents=True)
    made(folder / "r", rows(0.1, 0.5), {"run": {"rounds": 4}})
    assert told("ls", "memory://watched/runs").splitlines()[1] == "r made finished 2/4 1 0.5"
    assert told("watch", "memory://watched/runs") == told("ls", "memory://watched/runs")
