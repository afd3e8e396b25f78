"""The timeline of a run of peers, made from its scenario."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from raysim.parts.errors import BadInput
from raysim.scenario import Scenario
from raysim.workers.replies import PeerCost
from raysim.world import Cost
from raysim.world.peers_timeline import PeersTimeline


def new_timeline(scenario: Scenario, samples: NDArray[np.int64], measure: Callable[[], PeerCost]) -> PeersTimeline:
    """Returns the run's timeline. measure: returns the cost of a peer; called only if delays depend on it.

    Raises BadInput if a peer has no samples to train on.
    """
    if without := np.flatnonzero(samples == 0).tolist():
        text = f"every peer must hold a sample to train on, got none for {len(without)} peers, such as {without[:5]}"
        raise BadInput("data.partition", f"{text}; take fewer data.clients, or another partition")
    assert scenario.topology is not None
    cost = None
    if scenario.world.delay.needs_cost:
        peer_cost, groups = measure(), scenario.groups

        def cost(peer: int, neighbours: int) -> Cost:
            held = int(samples[peer])
            # A backward pass costs two forward passes.
            trained = 3 * scenario.peer.samples_seen(groups.local(peer), held)
            mixing = peer_cost.passes.of(held) + neighbours * peer_cost.passes_per_neighbour.of(held)
            passes = trained + mixing
            sent = neighbours * peer_cost.message_bytes
            return Cost(peer_cost.forward_flops * passes, sent, sent, passes / 3)

    horizon, peers = scenario.run.horizon, len(samples)
    return PeersTimeline(scenario.world, scenario.topology, peers, horizon, scenario.seed, cost)
