"""Schedules: their values by hand, and what they may not be."""

import math
import pickle
from typing import Any

import pytest
from conftest import Raw

from raysim import Scenario, ScenarioError, parse_scenario
from raysim.schedules import Schedule
from raysim.terms import Moment

BASE: Raw = {
    "name": "scheduled",
    "data": {"name": "digits", "clients": 8, "partition": "iid"},
    "model": "linear",
    "algorithm": {"name": "fedprox", "mu": 0.5},
    "local": {"lr": 0.1},
    "world": {"dispatch": {"per_round": 4}},
    "run": {"rounds": 4},
}


def with_lr(lr: Any) -> Scenario:
    return parse_scenario({**BASE, "local": {"lr": lr}})


def lr(block: Raw, **moment: Any) -> float:
    return with_lr(block).local.at(Moment(**moment)).lr


@pytest.mark.parametrize(
    ("block", "values"),
    [
        ({"name": "constant", "value": 0.2}, {0: 0.2, 7: 0.2}),
        ({"name": "exponential", "start": 0.1, "factor": 0.998}, {0: 0.1, 2: 0.1 * 0.998**2}),
        ({"name": "exponential", "start": 0.1, "factor": 0.5, "end": 0.03}, {1: 0.05, 2: 0.03, 9: 0.03}),
        ({"name": "step", "start": 1.0, "every": 3}, {2: 1.0, 3: 0.1, 6: 0.01}),
        ({"name": "step", "start": 1.0, "factor": 0.5, "milestones": [2.0, 3.0]}, {1: 1.0, 2: 0.5, 3: 0.25, 9: 0.25}),
        ({"name": "polynomial", "start": 1.0, "end": 0.2, "length": 4}, {0: 1.0, 1: 0.8, 4: 0.2, 9: 0.2}),
        ({"name": "polynomial", "start": 1.0, "length": 4, "power": 2.0}, {1: 0.5625, 2: 0.25}),
        ({"name": "cosine", "start": 1.0, "length": 4}, {0: 1.0, 1: (1 + math.cos(math.pi / 4)) / 2, 2: 0.5, 4: 0.0}),
        ({"name": "cosine", "start": 1.0, "length": 4, "warmup": 2}, {0: 0.1, 1: 0.55, 2: 1.0, 4: 0.5, 6: 0.0}),
        (
            {"name": "one_cycle", "peak": 1.0, "length": 10, "rise": 0.4, "rise_by": 10.0, "fall_by": 100.0},
            {0: 0.1, 2: 0.55, 4: 1.0, 7: 0.505, 10: 0.01, 20: 0.01},
        ),
    ],
)
def test_values_by_hand(block: Raw, values: dict[int, float]) -> None:
    assert {at: lr(block, round=at) for at in values} == pytest.approx(values)
    assert {at: lr({**block, "over": "versions"}, version=at) for at in values} == pytest.approx(values)
    assert {at: lr({**block, "over": "time"}, time=at) for at in values} == pytest.approx(values)


def test_a_cosine_that_takes_for_ever_changes_no_bit() -> None:
    assert lr({"name": "cosine", "start": 0.1, "length": 1e12}, round=500) == 0.1


def test_a_schedule_over_steps_stays_until_training() -> None:
    block = {"name": "exponential", "start": 0.1, "factor": 0.5, "over": "steps"}
    assert isinstance(with_lr(block).local.at(Moment()).lr, Schedule)


def test_a_part_without_schedules_is_itself_at_any_moment() -> None:
    scenario = with_lr(0.1)
    assert scenario.local.at(Moment(3)) is scenario.local
    assert scenario.algorithm.at(Moment(3)) is scenario.algorithm


def test_numbers_of_parts_within_an_algorithm_change_too() -> None:
    rule = {"name": "adam", "lr": {"name": "step", "start": 0.1, "every": 2}}
    scenario = parse_scenario({**BASE, "algorithm": {"name": "fedavg", "server": rule}})
    assert list(scenario.algorithm.schedules) == ["server.lr"]
    assert scenario.central.at(Moment(2)).server.lr == pytest.approx(0.01)  # type: ignore[attr-defined]


def test_it_is_written_read_and_sent_as_it_is() -> None:
    scenario = with_lr({"name": "cosine", "start": 0.1, "length": 10})
    again = parse_scenario(scenario.resolved())
    assert again.local == scenario.local and again.hash == scenario.hash
    assert pickle.loads(pickle.dumps(scenario)).local == scenario.local
    assert scenario.hash != with_lr(0.1).hash


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ({"name": "cosine", "start": -0.1, "length": 10}, r"local\.lr: must be greater than 0"),
        ({"name": "polynomial", "start": 0.1, "end": -0.1, "length": 10}, r"local\.lr: must be greater than 0"),
        ({"name": "cosine", "start": 0.1}, r"local\.lr\.length: must be given"),
        ({"name": "cosin", "start": 0.1, "length": 10}, r"local\.lr\.name: .*did you mean 'cosine'"),
        ({"name": "step", "start": 0.1, "every": 2, "milestones": [1.0]}, r"local\.lr: either `every` or `milestones`"),
        ({"name": "step", "start": 0.1, "milestones": [2.0, 1.0]}, r"local\.lr: `milestones` must rise"),
        ({"start": 0.1}, r"local\.lr: must have a name"),
        ({"name": "cosine", "start": 0.1, "length": 10, "over": "epochs"}, r"local\.lr\.over: must be"),
    ],
)
def test_what_makes_no_sense_is_refused(block: Raw, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        with_lr(block)


def test_all_its_values_must_suit_the_key() -> None:
    """A decay of 1 would never forget; the schedule gets there."""
    rule = {"name": "adam", "beta1": {"name": "polynomial", "start": 0.9, "end": 1.0, "length": 10}}
    with pytest.raises(ScenarioError, match=r"algorithm\.server\.beta1: must be less than 1"):
        parse_scenario({**BASE, "algorithm": {"name": "fedavg", "server": rule}})
