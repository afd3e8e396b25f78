"""Trackers get the same of a run while it goes on, when it is resumed, and afterwards from its tables."""

from pathlib import Path
from typing import Any

import pytest
from command_line import command, write
from conftest import digits
from retold import retell
from stopping import stop_after
from toys_parts import Kept

import raysim
from raysim.observers.tracker import Points, RoundPoint

OWN_MODELS = {"algorithm": "ditto", "run__evaluate_clients": "all", "data__local_test": 0.2}
PEERS = {"algorithm": "decfedavg", "topology": "ring", "data__clients": 6, "world": {}, "run__rounds": 4}


def scenario(**more: Any) -> raysim.Scenario:
    return raysim.parse_scenario(digits(**{"run__rounds": 6, "run__evaluate_every": 2} | more))


def told_again(folder: Path) -> Kept:
    tracker = Kept()
    retell(raysim.Result(folder).run, tracker)
    return tracker


def test_a_point_is_made_of_the_rows_of_its_round() -> None:
    points = Points()
    step = {"round": 0, "virtual_time": 1.0, "used": 2, "in_flight": 3, "staleness_mean": 1.0, "staleness_max": 2.0}
    steps = [{**step, "step": 1, "up_bytes": 10}, {**step, "step": 2, "up_bytes": 20, "in_flight": 1, "seconds": 9.0}]
    of = {"round": 0, "virtual_time": 1.5, "split": "test", "metric": "accuracy", "member": None}
    points.add("steps", steps)
    points.add("steps", steps[1:])  # again, from a checkpoint
    points.add("evaluations", [{**of, "subject": "global", "value": 0.5}, {**of, "subject": "peers", "value": None}])
    points.add("evaluations", [{**of, "subject": "client", "member": n, "value": n / 4} for n in (1, 2, 3)])
    points.add("steps", [{"round": 1, "step": 3, "virtual_time": 2.0, "used": 1, "up_bytes": 5}])
    (first,) = points.take(1)
    assert first == RoundPoint(
        0,
        1.5,
        {
            "test/accuracy": 0.5,
            "clients/test/accuracy": 0.5,
            "clients/test/accuracy_min": 0.25,
            "clients/test/accuracy_max": 0.75,
            "steps/used": 4.0,
            "steps/in_flight": 1.0,
            "steps/up_bytes": 30.0,
            "steps/staleness_mean": 1.0,
            "steps/staleness_max": 2.0,
        },
    )
    points.add("steps", steps)  # of a round that is over
    assert list(points.take(None)) == [RoundPoint(1, 2.0, {"steps/used": 1.0, "steps/up_bytes": 35.0})]


@pytest.mark.parametrize("more", [{}, OWN_MODELS, PEERS], ids=["server", "own models", "peers"])
def test_it_gets_the_same_while_the_run_goes_on_and_afterwards(more: dict[str, Any], tmp_path: Path) -> None:
    live = Kept()
    result = raysim.run(scenario(**more), out=tmp_path, inline=True, observers=[live])
    again = told_again(result.folder)
    assert live.kept == again.kept
    assert sorted(live.kept) == live.sent == again.sent
    subject = {"test/accuracy", "clients/test/accuracy", "peers/test/accuracy"} & live.kept[1].metrics.keys()
    values = result.pandas("evaluations").query("split == 'test' and metric == 'accuracy' and subject != 'peers'")
    (name,) = subject - {"test/accuracy"} or subject
    if name != "test/accuracy":
        values = values[values["subject"] != "global"]
    assert [live.kept[row].metrics[name] for row in (1, 3)] == pytest.approx(
        [values["value"][values["round"] == row].mean() for row in (1, 3)]
    )


def test_what_was_sent_before_an_interruption_is_not_sent_again(tmp_path: Path) -> None:
    tracker, whole = Kept(), raysim.run(scenario(), out=tmp_path / "whole", inline=True)
    early = raysim.run(scenario(), out=tmp_path, inline=True, observers=[stop_after(3), tracker])
    before = list(tracker.sent)
    raysim.resume(early.folder, inline=True, observers=[tracker])
    assert tracker.sent[len(before) :][0] >= before[-1]
    assert tracker.kept == told_again(whole.folder).kept
    late = Kept()  # one that comes to know the run only then is sent its past, too
    early = raysim.run(scenario(), out=tmp_path, inline=True, observers=[stop_after(3)])
    raysim.resume(early.folder, inline=True, observers=[late])
    assert late.kept == tracker.kept


def test_one_whose_package_is_missing_is_refused_before_anything_starts(tmp_path: Path) -> None:
    path = write(tmp_path, digits(run__log=["toys_parts:Lacking"]))
    text = "needs the package no-such-package, which is not installed; pip install 'no-such-package'"
    for how in (["run", path], ["sweep", path, "--seeds", "0,1"]):
        answer = command(*how, "--inline", "--out", tmp_path / "runs")
        assert (answer.exit_code, answer.stderr.count(text)) == (2, 1), answer.output
    assert not (tmp_path / "runs").exists()
