"""The summary of a run, made by hand."""

import math
from pathlib import Path
from typing import Any

import pytest
from reported_runs import Rows, evaluation, made, step
from rich.console import Console
from table_rows import update

from results import Run, open_run, summary, write_json

INFO = {
    "run": "r-1",
    "name": "hand-made",
    "status": "finished",
    "scenario": {
        "algorithm": {"name": "fedbuff"},
        "data": {"name": "digits", "clients": 7},
        "model": {"name": "mlp"},
        "world": {"delay": {"name": "half_normal", "unit": "rounds"}},
    },
    "seed": 3,
    "error": None,
    "totals": {"rounds": 4},
    "seconds": {"total": 12.5},
    "digest": {"run": "ab" * 32},
}


def hand_made(folder: Path, info: dict[str, Any]) -> Run:
    ends = (("used", 0.0), ("used", 3.0), ("discarded", 9.0), ("dropped", 1.0))
    of_global = {"accuracy": (0.1, 0.5, 0.4), "loss": (2.0, 1.0, math.nan), "distance": (3.0, 2.0, 1.0)}
    of_clients = {1: (0.75, 0.75), 2: (0.25, 0.75)}
    rows: Rows = {
        "steps": [step(number, 100, 0.6 * number) | {"down_bytes": 200} for number in (1, 2)],
        "updates": [update(place, status=status, staleness=age) for place, (status, age) in enumerate(ends)],
        "evaluations": [
            *(evaluation(at, v, metric=metric) for metric, values in of_global.items() for at, v in enumerate(values)),
            *(
                evaluation(at, v, n, subject="client")
                for at, values in of_clients.items()
                for n, v in enumerate(values)
            ),
        ],
    }
    made(folder, rows)
    write_json(folder, info)
    return open_run(folder)


def test_the_summary_of_a_run_made_by_hand(tmp_path: Path) -> None:
    found = summary(hand_made(tmp_path, INFO))
    assert (found.title, found.status) == ("hand-made", "finished")
    assert found.facts == {
        "scenario": "fedbuff, digits, 7 clients, mlp, seed 3",
        "done": "4 rounds, 2 steps, virtual time 2 rounds, 12.5 s real time",
        "updates": "2 used, 1 discarded, 1 dropped, 0 unfinished",
        "staleness": "mean 1.5, largest 3",
        "sent": "200 bytes up, 400 bytes down",
        "digest": "ab" * 32,
    }


def test_the_scores_of_a_run_made_by_hand(tmp_path: Path) -> None:
    """The best accuracy is the largest, the best loss the smallest that is a number; members are averaged."""
    scores = summary(hand_made(tmp_path, INFO)).scores.set_index(["subject", "metric"])
    assert [*scores.index][-1] == ("client", "accuracy")
    nan, numbers = math.nan, scores.drop(columns="split")
    wanted = {
        ("global", "accuracy"): [0.1, 0.5, 1, 0.4, nan, nan, nan],
        ("global", "loss"): [2.0, 1.0, 1, nan, nan, nan, nan],
        ("global", "distance"): [3.0, nan, nan, 1.0, nan, nan, nan],
        ("client", "accuracy"): [0.75, 0.75, 1, 0.5, 2, 0.25, 0.75],
    }
    for key, row in wanted.items():
        assert numbers.loc[key].tolist() == pytest.approx(row, nan_ok=True)


def test_the_summary_of_a_run_under_way_takes_what_is_there(tmp_path: Path) -> None:
    found = summary(hand_made(tmp_path / "a", {"run": "r-1", "status": "running"}))
    # The last row is of round 2, and rounds are counted from 0.
    assert found.facts["done"] == "3 rounds, 2 steps, virtual time 2, 1.2 s real time"
    assert "digest" not in found.facts and "scenario" not in found.facts
    write_json(tmp_path / "b", {"status": "running"})
    empty = summary(open_run(tmp_path / "b"))
    assert (empty.title, len(empty.scores), empty.facts["done"]) == ("b", 0, "0 rounds, 0 steps, virtual time 0")


def test_the_rounds_of_a_run_that_failed_in_its_first_one_are_none(tmp_path: Path) -> None:
    """Although a step of that round was made."""
    found = summary(hand_made(tmp_path, INFO | {"totals": {"rounds": 0}}))
    assert found.facts["done"].startswith("0 rounds, 2 steps")


@pytest.mark.parametrize("info", [INFO, {"status": "failed", "error": "train of client 3 [red] failed"}])
def test_a_summary_fits_eighty_columns(tmp_path: Path, info: dict[str, Any]) -> None:
    """Nothing is cut or taken for markup."""
    console = Console(width=80, record=True, file=(tmp_path / "out").open("w"))
    with console.file:
        console.print(summary(hand_made(tmp_path / "run", info)))
    text = console.export_text()
    assert "…" not in text
    assert "2 used, 1 discarded, 1 dropped, 0 unfinished" in text
    assert "2 clients test  accuracy" in text
    assert info["error"] is None or info["error"] in text
    assert max(map(len, text.splitlines())) <= 80
