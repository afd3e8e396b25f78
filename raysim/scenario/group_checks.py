"""Checks of the groups of clients in a scenario."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from raysim.clients import Behaviour, group_problems
from raysim.local import Local
from raysim.parts.errors import Problem
from raysim.scenario.explain import explain
from raysim.scenario.schema import Scenario
from raysim.terms import Moment


def client_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields what is wrong with the groups: who is in them, how they train, and what they do."""
    yield from group_problems(scenario.clients, scenario.data.clients)
    for place, group in enumerate(scenario.clients):
        path = f"clients.{place}"
        try:
            local = group.settings(scenario.local)
        except ValidationError as error:
            merged = {**scenario.local.model_dump(), **group.local}
            for problem in explain(error, Local, merged):
                yield Problem(f"{path}.local" + (f".{problem.path}" if problem.path else ""), problem.text)
            continue
        if group.local:
            of_group = scenario.model_copy(update={"local": local})
            for problem in scenario.algorithm.at(Moment()).problems(of_group):
                if problem.path.startswith("local"):
                    yield Problem(f"{path}.{problem.path}", problem.text)
        if scenario.data.classes == 0 and type(group.behaviour).labels is not Behaviour.labels:
            text = f"{group.behaviour.name} needs labels, and {scenario.data.name} has none; take another"
            yield Problem(f"{path}.behaviour", text)
