"""How often clients had taken part beside evaluations of their models, and leaving out those that never had."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from command_line import command
from compared_runs import cells, compare, refused
from conftest import Raw, Simulate, digits

from results import load
from results.counted import never_picked
from results.report import report
from results.report.members import members

PICKS: Raw = {"dispatch": {"picks": [[0, 1], [0, 2]]}}


def four_clients(simulate: Simulate) -> Path:
    """Clients 0 to 2 take part in two rounds, client 3 never."""
    data = {"name": "digits", "clients": 4, "partition": "iid", "local_test": 0.2}
    run = {"rounds": 2, "evaluate_every": 1, "evaluate_clients": "all"}
    return simulate(digits(algorithm="local_only", data=data, world=PICKS, run=run)).folder


def test_evaluations_say_how_often_a_client_had_taken_part(simulate: Simulate) -> None:
    frame = load(four_clients(simulate)).pandas("evaluations")
    own = frame.query("subject == 'client' and metric == 'accuracy'")
    assert own.groupby("round").picked.agg(list).tolist() == [[1, 1, 0, 0], [2, 1, 1, 0]]
    assert frame.query("subject == 'global'").picked.isna().all()


def test_a_comparison_says_who_never_took_part_and_can_leave_them_out(simulate: Simulate) -> None:
    folder = four_clients(simulate)
    frame = load(folder).pandas("evaluations").query("subject == 'client' and metric == 'accuracy' and round == 1")
    all_of_them, some = (cells(folder, "--subject", "client", *options) for options in ([], ["--picked"]))
    assert float(all_of_them[0]["mean"]) == pytest.approx(frame.value.mean())
    assert float(some[0]["mean"]) == pytest.approx(frame.value[frame.picked > 0].mean())
    note = "1 of 4 evaluated clients never took part in it, and count with what they began with; --picked leaves them"
    assert note in compare(folder, "--subject", "client").stderr
    assert "never took part" not in compare(folder, "--subject", "client", "--picked").output
    assert "picked: must be given for subject client only" in refused(folder, "--picked")


def test_a_report_says_so_too(simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("results.report.page.SECTIONS", (members,))  # drawing all others takes seconds
    folder = four_clients(simulate)
    assert "1 of 4 evaluated clients never took part in it" in report(load(folder)).html
    assert command("report", folder, "--picked", "-o", tmp_path / "report.html").exit_code == 0
    assert "Clients are left out until they have taken part." in (tmp_path / "report.html").read_text()


def evaluated(picked: np.ndarray[Any, Any]) -> Any:
    """What `never_picked` reads of runs. picked: how often each client had taken part at the end, (runs, clients)."""
    runs, clients = picked.shape
    ids = [f"run-{number}" for number in range(runs)]
    ends = np.stack([np.zeros_like(picked), picked], axis=1)  # before that, nobody had
    columns = {
        "run": pa.array(np.repeat(ids, 2 * clients)).dictionary_encode(),
        "round": np.tile(np.repeat([3, 7], clients), runs),
        "member": np.tile(np.arange(clients), 2 * runs),
        "picked": ends.ravel(),
    }
    return SimpleNamespace(pandas=lambda *_, **__: pa.table(columns).to_pandas())


def test_only_the_last_evaluation_of_each_run_counts() -> None:
    assert never_picked(evaluated(np.array([[1, 0, 0], [2, 1, 0]]))) == (
        "1 to 2 of 3 evaluated clients never took part in a run, and count with what they began with"
    )
    assert never_picked(evaluated(np.array([[1, 1, 4], [2, 1, 1]]))) is None
    assert never_picked(evaluated(np.empty((0, 0), int))) is None
