"""The summary of a run, made by hand."""

import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from table_rows import NEVER, evaluation, step, update

from results import Run, Writer, open_run, summary, write_json
from results.ending import Status
from results.schemas import EvaluationRow, StepRow, UpdateRow
from results.show import render

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
    writer = Writer(folder, "r-1", flush_seconds=NEVER)
    for number in (1, 2):
        writer.add(StepRow(**step(number)))
    for number, (status, staleness) in enumerate([("used", 0.0), ("used", 3.0), ("discarded", 9.0), ("dropped", 1.0)]):
        writer.add(UpdateRow(**update(number, status=status, staleness=staleness)))
    for number, accuracy, loss in ((0, 0.1, 2.0), (1, 0.5, 1.0), (2, 0.4, math.nan)):
        writer.add(EvaluationRow(**evaluation(number, "global", None, "accuracy", accuracy)))
        writer.add(EvaluationRow(**evaluation(number, "global", None, "loss", loss)))
        writer.add(EvaluationRow(**evaluation(number, "global", None, "distance", 3.0 - number)))
    for number, values in ((1, (0.75, 0.75)), (2, (0.25, 0.75))):
        for client, value in enumerate(values):
            writer.add(EvaluationRow(**evaluation(number, "client", client, "accuracy", value)))
    writer.flush()
    write_json(folder, info)
    return open_run(folder)


def test_the_summary_of_a_run_made_by_hand(tmp_path: Path) -> None:
    found = summary(hand_made(tmp_path, INFO))
    assert (found.run, found.name, found.status, found.error) == ("r-1", "hand-made", "finished", None)
    assert (found.algorithm, found.data, found.model, found.seed) == ("fedbuff", "digits", "mlp", 3)
    assert (found.clients, found.rounds, found.steps) == (7, 4, 2)
    assert found.updates == {"used": 2, "discarded": 1, "dropped": 1, "unfinished": 0}
    assert (found.staleness_mean, found.staleness_max) == (1.5, 3.0)
    assert (found.up_bytes, found.down_bytes) == (200, 400)
    assert (found.virtual_time, found.unit, found.wall_s, found.digest) == (2.0, "rounds", 12.5, "ab" * 32)


def test_the_scores_of_a_run_made_by_hand(tmp_path: Path) -> None:
    """The best accuracy is the largest, the best loss the smallest that is a number; members are averaged."""
    scores = {(score.subject, score.metric): score for score in summary(hand_made(tmp_path, INFO)).scores}
    assert list(scores)[-1] == ("client", "accuracy")
    accuracy = scores["global", "accuracy"]
    assert (accuracy.first, accuracy.best, accuracy.best_step, accuracy.last) == (0.1, 0.5, 1, 0.4)
    assert (accuracy.members, accuracy.lowest, accuracy.highest) == (None, None, None)
    loss = scores["global", "loss"]
    assert (loss.first, loss.best, loss.best_step) == (2.0, 1.0, 1)
    assert math.isnan(loss.last)
    distance = scores["global", "distance"]
    assert (distance.first, distance.best, distance.best_step, distance.last) == (3.0, None, None, 1.0)
    clients = scores["client", "accuracy"]
    assert (clients.first, clients.best, clients.best_step, clients.last) == (0.75, 0.75, 1, 0.5)
    assert (clients.members, clients.lowest, clients.highest) == (2, 0.25, 0.75)


def test_the_summary_of_a_run_under_way_takes_what_is_there(tmp_path: Path) -> None:
    found = summary(hand_made(tmp_path / "a", {"run": "r-1", "status": "running"}))
    assert (found.status, found.algorithm, found.clients, found.digest) == ("running", None, None, None)
    assert (found.rounds, found.wall_s) == (3, 1.2)  # the last row is of round 2, and rounds are counted from 0
    write_json(tmp_path / "b", {"status": "running"})
    empty = summary(open_run(tmp_path / "b"))
    assert (empty.run, empty.steps, empty.virtual_time, empty.staleness_mean, empty.scores) == ("b", 0, 0.0, None, ())
    assert (empty.up_bytes, empty.down_bytes) == (None, None)


def test_the_rounds_of_a_run_that_failed_in_its_first_one_are_none(tmp_path: Path) -> None:
    """Although a step of that round was made."""
    assert summary(hand_made(tmp_path, INFO | {"totals": {"rounds": 0}})).rounds == 0


@pytest.mark.parametrize("info", [INFO, {"status": "failed", "error": "train of client 3 [red] failed"}])
def test_a_summary_fits_eighty_columns(tmp_path: Path, info: dict[str, Any]) -> None:
    """Nothing is cut or taken for markup."""
    console = Console(width=80, record=True, file=(tmp_path / "out").open("w"))
    with console.file:
        console.print(render(summary(hand_made(tmp_path / "run", info))))
    text = console.export_text()
    assert "…" not in text
    assert "2 used, 1 discarded, 1 dropped, 0 unfinished" in text
    assert "2 clients test  accuracy" in text
    assert info["error"] is None or info["error"] in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({}, "a smaller local.lr, a warm-up of it or clip_norm among local.gradients"),
        (
            {"local.lr": 0.5, "local.gradients": '[{"name": "clip_norm"}]', "algorithm.server_lr": 3.0},
            "a smaller local.lr than 0.5, a warm-up of it or a smaller algorithm.server_lr than 3",
        ),
        (
            {"local.lr": "step(start=1)", "local.lr.warmup": 3.0, "local.gradients": "[clip_norm]"},
            "a smaller local.lr than step(start=1)",
        ),
    ],
)
def test_the_cure_of_a_divergence_is_what_the_scenario_does_not_do_yet(keys: dict[str, Any], told: str) -> None:
    assert Status.DIVERGED.cure(keys) == told
