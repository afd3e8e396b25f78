"""The timelines of runs, made from their scenarios."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from raysim.engine.server.training import Training, Uses
from raysim.parts.errors import BadInput
from raysim.scenario import Scenario
from raysim.terms import Moment, Trip
from raysim.uplink.chain import traffic_of
from raysim.workers.replies import WorkCost
from raysim.world import Cost
from raysim.world.clock import Horizon
from raysim.world.pairs_timeline import PairsTimeline
from raysim.world.peers_timeline import PeersTimeline
from raysim.world.server_happening import Dispatched
from raysim.world.server_timeline import ServerTimeline


def of_server(
    scenario: Scenario,
    samples: NDArray[np.int64],
    partition: Callable[[], Mapping[str, np.ndarray]],
    measure: Callable[[], WorkCost],
    training: Training | None = None,
    horizon: Horizon | None = None,
) -> ServerTimeline:
    """Returns the timeline of a run with a server.

    partition: returns the table `partition`; called only if the policy needs labels. measure: returns the cost of an
    update; called only if delays depend on it. training: that of the clients, for which the timeline may have to wait;
    None in a dry run, which refuses such a scenario. horizon: when it ends; by default as the scenario says.
    """
    horizon, trigger, labels = horizon or scenario.run.horizon, scenario.central.trigger, None
    if scenario.world.dispatch.policy.needs_labels:
        labels = _label_counts(partition(), len(samples))
    loss = training.loss if training and scenario.needs_losses else None
    uses = Uses(scenario)
    if training is not None:
        training.uses = uses
    given = (scenario.world, trigger, samples, horizon, scenario.seed)
    if not scenario.needs_cost:
        return ServerTimeline(*given, labels=labels, loss=loss, on_step=uses.stepped)
    cost, groups = measure(), scenario.groups

    def of_work(client: int, had: int, moment: Moment, seen: float) -> Cost:
        missed = uses.between(had, moment.version)
        trip = Trip(cost.sizes, cost.tensors, cost.up, groups.name(client), missed)
        traffic = traffic_of(
            scenario.central.at(moment).traffic(trip), [one.at(moment) for one in scenario.uplink], trip
        )
        return Cost(3 * cost.forward_flops * seen, traffic.down, traffic.up, seen)  # a backward pass costs two forward

    def foreseen(client: int, had: int, moment: Moment) -> Cost:
        held = int(samples[client])
        seen = scenario.central.samples_seen(groups.local(client), held) + cost.passes.of(held) / 3
        return of_work(client, had, moment, seen)

    def followed(dispatched: Dispatched) -> Cost:
        assert training is not None
        return of_work(dispatched.client, dispatched.had, dispatched.moment, training.measured(dispatched))

    follow = followed if scenario.delays_follow_training else None
    return ServerTimeline(*given, foreseen, follow, labels, loss, uses.stepped)


def of_peers(scenario: Scenario, samples: NDArray[np.int64], measure: Callable[[], WorkCost]) -> PeersTimeline:
    """Returns the timeline of a run of peers. measure: returns the cost of a peer; called only if delays depend on it.

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
            trip = Trip(peer_cost.sizes, peer_cost.tensors, peer_cost.up, groups.name(peer), {})
            sent = neighbours * traffic_of(scenario.peer.traffic(trip), scenario.uplink, trip).up
            return Cost(peer_cost.forward_flops * passes, sent, sent, passes / 3)

    horizon, peers = scenario.run.horizon, len(samples)
    kind = PairsTimeline if scenario.peer.pairs else PeersTimeline
    return kind(scenario.world, scenario.topology, peers, horizon, scenario.seed, cost)


def _label_counts(partition: Mapping[str, np.ndarray], clients: int) -> NDArray[np.int64]:
    """Returns how many training samples of each label clients have, (clients, labels)."""
    trained = partition["split"] == "train"
    client, label = partition["client"][trained], partition["label"][trained]
    counts = np.zeros((clients, int(label.max()) + 1), dtype=np.int64)
    counts[client, label] = partition["samples"][trained]
    return counts
