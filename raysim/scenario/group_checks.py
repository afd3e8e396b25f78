"""Checks of the groups of clients in a scenario."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from raysim.clients import Behaviour, group_problems
from raysim.local import Local
from raysim.parts.errors import Problem
from raysim.scenario.explain import explain
from raysim.scenario.local_checks import local_problems
from raysim.scenario.schedule_checks import schedule_problems
from raysim.scenario.schema import Scenario
from raysim.terms import Moment


def client_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields what is wrong with the groups: who is in them, how they train, and what they do."""
    yield from group_problems(scenario.clients, scenario.data.clients)
    of_all = _training_problems(scenario) if scenario.clients else []
    for place, group in enumerate(scenario.clients):
        path = f"clients.{place}"
        try:
            local = group.settings(scenario.local)
        except ValidationError as error:
            merged = {**scenario.local.model_dump(), **group.local}
            for problem in explain(error, Local, merged):
                yield Problem(f"{path}.local" + (f".{problem.path}" if problem.path else ""), problem.text)
            continue
        for problem in _training_problems(scenario.model_copy(update={"local": local})):
            if problem not in of_all:
                yield Problem(f"{path}.{problem.path}", problem.text)
        own, of_most = local.optimizer, scenario.local.optimizer
        keeps = of_most.keep and type(own) is type(of_most)  # all clients keep states of one shape
        if own.keep != keeps:
            must, got = (str(value).lower() for value in (keeps, own.keep))  # as YAML has them
            text = f"must be {must}, for `local.optimizer` decides who keeps what, got {got}; set it there"
            yield Problem(f"{path}.local.optimizer.keep", text)
        if scenario.data.classes == 0 and type(group.behaviour).labels is not Behaviour.labels:
            text = f"{group.behaviour.name} needs labels, and {scenario.data.name} has none; take another"
            yield Problem(f"{path}.behaviour", text)


def _training_problems(scenario: Scenario) -> list[Problem]:
    """Returns what is wrong with the scenario's `local`, as far as it is right by itself."""
    of_algorithm = scenario.algorithm.at(Moment()).problems(scenario)
    found = (*local_problems(scenario), *schedule_problems(scenario), *of_algorithm)
    return [problem for problem in found if problem.path.startswith("local")]
