"""The timeline of a run of peers, made from its scenario, and the bytes of its messages."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from raysim.parts.errors import BadInput
from raysim.scenario import Scenario
from raysim.terms import Moment, Trip
from raysim.uplink.channel import channels, traffic_of
from raysim.workers.replies import WorkCost
from raysim.world import Cost, Neighbours
from raysim.world.gossip_timeline import GossipTimeline
from raysim.world.pairs_timeline import PairsTimeline
from raysim.world.peers_happening import Exchanged, Joined
from raysim.world.peers_timeline import PeersTimeline
from raysim.world.rounds_timeline import RoundsTimeline


def timeline_of(scenario: Scenario, samples: NDArray[np.int64], measure: Callable[[], WorkCost]) -> PeersTimeline:
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

        def cost(peer: int, near: Neighbours) -> Cost:
            held = int(samples[peer])
            # A backward pass costs two forward passes.
            trained = 3 * scenario.peer.samples_seen(groups.local(peer), held)
            mixing = peer_cost.passes.of(held) + len(near.senders) * peer_cost.passes_per_neighbour.of(held)
            passes = trained + mixing
            size = message_bytes(scenario, peer_cost, peer, Moment())
            down, up = len(near.senders) * size, len(near.receivers) * size
            return Cost(peer_cost.forward_flops * passes, down, up, passes / 3)

    horizon, peers = scenario.run.horizon, len(samples)
    peer, world = scenario.peer, scenario.world
    kind = PairsTimeline if peer.pairs else RoundsTimeline if world.synchronous else GossipTimeline
    given = (world, scenario.topology, peers, horizon, scenario.seed, cost)
    return kind(*given, consumes=peer.consumes, lag=peer.lag, sends_first=peer.sends_state)


def message_bytes(scenario: Scenario, cost: WorkCost, peer: int, moment: Moment) -> int:
    """Returns the size of a peer's message. cost: of a peer, as it was measured. moment: when it began to train."""
    trip = Trip(cost.sizes, cost.tensors, scenario.groups.name(peer))
    up = channels("uplink", [one.at(moment) for one in scenario.uplink], cost.up)
    return traffic_of(scenario.peer.at(moment).traffic(trip), up).up


def sizes_of(scenario: Scenario, cost: WorkCost, exchanged: Exchanged, began: dict[int, Moment]) -> Iterator[int]:
    """Yields the bytes of a message for each mix of a round. began: when each peer began to train for its next mix,
    which changes; a peer that is not in it began at the start."""
    over = exchanged.version if scenario.world.synchronous else exchanged.round
    for change in exchanged.changes:
        if isinstance(change, Joined):
            began[change.peer] = Moment(exchanged.round, 0, change.time)
            continue
        yield message_bytes(scenario, cost, change.peer, began.get(change.peer, Moment()))
        began[change.peer] = Moment(over, change.number + 1, change.time)
