"""Checks of the schedules in a scenario: they must change with something that its world has."""

from __future__ import annotations

from collections.abc import Iterator

from raysim.parts.errors import Problem
from raysim.scenario.schema import Scenario


def schedule_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields a problem for each schedule that changes with rounds where there are none, or with steps outside of
    `local`."""
    rounds = not scenario.has_server or scenario.world.has_rounds
    for block, schedulable in (("algorithm", scenario.algorithm), ("local", scenario.local)):
        for key, schedule in schedulable.schedules.items():
            path = f"{block}.{key}.over"
            if schedule.over == "rounds" and not rounds:
                text = "must be versions or time, for this world has no rounds, got rounds"
                yield Problem(path, text)
            if schedule.over == "steps" and (block, key) != ("local", "lr"):
                text = "must be rounds, versions or time: within a training, `local.lr` alone changes, got steps"
                yield Problem(path, text)
