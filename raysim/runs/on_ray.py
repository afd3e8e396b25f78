"""What runs ask of Ray: a connection, and actors, which wait for the next run when one is over.

Ray is loaded within functions only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from raysim.engine.families import family_of
from raysim.runs.machines import environment
from raysim.scenario import Scenario
from raysim.workers.device import stand_in

if TYPE_CHECKING:
    from actors.placement import Demand
    from actors.workforce import Terms, Workforce


@contextmanager
def session() -> Iterator[None]:
    """Keeps the actors of each run within the block for the next one that asks for the same, and ends them after it.

    Outside of such a block, actors wait for a minute; `shutdown` ends them at once.
    """
    from actors.session import SESSION

    with SESSION.held():
        yield


def shutdown() -> None:
    """Ends the actors on Ray that wait for the next run of this process, which gives back what they have reserved."""
    if module := sys.modules.get("actors.session"):  # else there are none
        module.SESSION.shutdown()


def connect(scenarios: Sequence[Scenario], address: str | None = None, at_once: int = 1) -> None:
    """Connects to Ray before several runs. If it starts a local Ray, that is large enough for those that need most.

    at_once: how many go on at a time.
    """
    from actors.connection import connect as connect_to

    connect_to([demand_of(scenario) for scenario in scenarios], address, at_once)


def hired(scenario: Scenario) -> AbstractContextManager[Workforce]:
    """Returns a context with actors for a run, on the Ray to which this process is connected.

    Raises MissingResources if there is no room for them.
    """
    from actors.session import SESSION

    return SESSION.hired(terms_of(scenario))


def terms_of(scenario: Scenario) -> Terms:
    """Returns on which terms actors carry out a scenario."""
    from actors.workforce import Terms

    asked = scenario.resources
    groups = [(group.name, *group[2:]) for group in family_of(scenario).groups]  # without factories, which may differ
    variables = environment(asked.cpu_capability) | stand_in()
    return Terms(demand_of(scenario), asked.patience_s, variables, (groups, asked.threads))


def demand_of(scenario: Scenario) -> Demand:
    """Returns what the scenario asks of a Ray cluster for each of its actors."""
    from actors.placement import Demand

    groups = family_of(scenario).groups
    actors = {f"{group.name}-{number}": group.needs for group in groups for number in range(group.workers)}
    spread, takes_all = any(group.spread for group in groups), any(group.further for group in groups)
    return Demand(actors, scenario.resources.wait_s, takes_all, spread)
