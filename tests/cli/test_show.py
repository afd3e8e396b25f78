"""`raysim show`: a summary of a run."""

from pathlib import Path

import pytest
from command_line import command
from conftest import Simulate, digits

import raysim
from results import NotARun, write_json


def test_show_sums_up_a_finished_run(simulate: Simulate) -> None:
    result = simulate(digits(data__local_test=0.2, run__evaluate_clients=5))
    answer = command("show", result.folder)
    assert answer.exit_code == 0
    for text in ("digits  finished", "fedbuff, digits, 30 clients, mlp, seed 0", "global", "5 clients ", "accuracy"):
        assert text in answer.stdout
    assert "\nbest: selected on the test split, so it is too optimistic; " in answer.stdout


def test_show_says_once_that_a_planned_budget_ended_a_run(tmp_path: Path) -> None:
    """run.json says it in words, too."""
    planned = {"status": "finished", "ended_by": "virtual_time", "ended_early": "its time was up"}
    info = {"run": "a", "scenario": {"run": {"until": {"virtual_time": 2}}}, **planned}
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    write_json(tmp_path / "a", info)
    write_json(tmp_path / "b", info | {"run": "b", "ended_by": "clients", "ended_early": "no client is left"})
    shown = command("show", tmp_path / "a").stdout
    assert "run.until.virtual_time=2" in shown and "its time was up" not in shown
    assert "no client is left" in command("show", tmp_path / "b").stdout
    lines = command("show", tmp_path).stdout.splitlines()
    assert lines[1].split()[:1] == ["a"] and lines[-1] == "b: no client is left"


def test_show_notes_a_server_that_never_stepped(simulate: Simulate) -> None:
    """Six clients are picked, and three of them are still on their way when the run ends."""
    world = {"dispatch": {"per_round": 3}, "delay": {"name": "constant", "value": 1}}
    folder = simulate(digits(algorithm={"name": "fedbuff", "buffer": 5}, world=world, run__rounds=2)).folder
    assert "the server never stepped" in command("show", folder).stdout


def test_show_refuses_what_is_no_run(tmp_path: Path) -> None:
    answer = command("show", tmp_path)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr.startswith(
        f"{tmp_path}: must be a run's folder, with run.json in it, or hold such folders; got none; "
        "give another one, or make a first run with `raysim run`"
    )


def test_a_name_stands_for_its_newest_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any depth of runs/, or of the folder before the name; the beginning of several names is refused."""
    monkeypatch.chdir(tmp_path)
    for place, name in enumerate(["slow-a", "slow-b", "slow", "slow", "fast"]):
        folder = tmp_path / "runs" / ("sweep" if name == "slow" else ".") / f"{name}-{9 - place}"
        folder.mkdir(parents=True)
        write_json(folder, {"run": folder.name, "name": name, "status": "finished", "started_at": f"2026-0{place + 1}"})
    for given, found in (
        ("slow", "sweep/slow-6"),
        ("runs/slow", "sweep/slow-6"),
        ("fa", "fast-5"),
        ("slow-a", "slow-a-9"),
    ):
        answer = command("show", given)
        assert answer.exit_code == 0, answer.output
        assert answer.stderr == f"runs/{found} is the newest run of {Path(given).name}\n"
    assert command("show", "sweep").exit_code == 0 and command("show", "runs/fast-5").stderr == ""
    assert "got that of slow, slow-a, slow-b; write more" in " ".join(
        command("show", "slow-").stderr.replace("│", "").split()
    )
    assert raysim.Result("slow").folder == Path("runs/sweep/slow-6")
    for wrong in ("fa", "none"):
        with pytest.raises(NotARun, match=f"{wrong}: a run's folder must hold run.json"):
            raysim.Result(wrong)
