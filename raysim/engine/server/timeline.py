"""The timeline of a run with a server, made from its scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from raysim.engine.server.training import Training
from raysim.scenario import Scenario
from raysim.workers.replies import UpdateCost
from raysim.world import Cost
from raysim.world.horizon import Horizon
from raysim.world.server_happening import Dispatched
from raysim.world.server_timeline import ServerTimeline


def new_timeline(
    scenario: Scenario,
    samples: NDArray[np.int64],
    partition: Callable[[], Mapping[str, np.ndarray]],
    measure: Callable[[], UpdateCost],
    training: Training | None = None,
    horizon: Horizon | None = None,
) -> ServerTimeline:
    """Returns the run's timeline.

    partition: returns the table `partition`; called only if the policy needs labels. measure: returns the cost of an
    update; called only if delays depend on it. training: that of the clients, for which the timeline may have to wait;
    None in a dry run, which refuses such a scenario. horizon: when it ends; by default as the scenario says.
    """
    horizon, trigger, labels = horizon or scenario.run.horizon, scenario.central.trigger, None
    if scenario.world.dispatch.policy.needs_labels:
        labels = _label_counts(partition(), len(samples))
    loss = training.loss if training and scenario.needs_losses else None
    if not scenario.needs_cost:
        return ServerTimeline(scenario.world, trigger, samples, horizon, scenario.seed, labels=labels, loss=loss)
    cost, groups = measure(), scenario.groups

    def client_cost(client: int) -> Cost:
        held = int(samples[client])
        # A backward pass costs two forward passes.
        total = scenario.central.samples_seen(groups.local(client), held) + cost.predicting.of(held) / 3
        return Cost(cost.flops_per_sample * total, cost.down_bytes, cost.up_bytes, total)

    def dispatched_cost(dispatched: Dispatched) -> Cost:
        assert training is not None
        return training.measured(dispatched, cost)

    follow = dispatched_cost if scenario.delays_follow_training else None
    return ServerTimeline(scenario.world, trigger, samples, horizon, scenario.seed, client_cost, follow, labels, loss)


def _label_counts(partition: Mapping[str, np.ndarray], clients: int) -> NDArray[np.int64]:
    """Returns how many training samples of each label clients have, (clients, labels)."""
    trained = partition["split"] == "train"
    client, label = partition["client"][trained], partition["label"][trained]
    counts = np.zeros((clients, int(label.max()) + 1), dtype=np.int64)
    counts[client, label] = partition["samples"][trained]
    return counts
