"""The timeline of a run with a server, made from its scenario."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from raysim.scenario import Scenario
from raysim.workers.replies import UpdateCost
from raysim.world import Cost
from raysim.world.server_happening import Dispatched
from raysim.world.server_timeline import ServerTimeline


def new_timeline(
    scenario: Scenario,
    samples: NDArray[np.int64],
    measure: Callable[[], UpdateCost],
    measured: Callable[[Dispatched, UpdateCost], Cost] | None = None,
) -> ServerTimeline:
    """Returns the run's timeline.

    measure: returns the cost of an update; called only if delays depend on it. measured: returns the cost of what a
    dispatched client has really done, given the cost of an update; called only if clients may stop early.
    """
    rounds, trigger = scenario.run.rounds, scenario.central.trigger
    if not scenario.needs_cost:
        return ServerTimeline(scenario.world, trigger, samples, rounds, scenario.seed)
    cost, groups = measure(), scenario.groups

    def client_cost(client: int) -> Cost:
        held = int(samples[client])
        # A backward pass costs two forward passes.
        total = scenario.central.samples_seen(groups.local(client), held) + cost.predicting.of(held) / 3
        return Cost(cost.flops_per_sample * total, cost.down_bytes, cost.up_bytes, total)

    def dispatched_cost(dispatched: Dispatched) -> Cost:
        assert measured is not None  # a dry run refuses such a scenario
        return measured(dispatched, cost)

    follow = dispatched_cost if scenario.follows_training else None
    return ServerTimeline(scenario.world, trigger, samples, rounds, scenario.seed, client_cost, follow)
