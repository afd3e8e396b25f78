"""The timelines of runs, made from their scenarios."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from raysim.clients.capacity import LevelCost, Levels
from raysim.clients.group import Architectures
from raysim.engine.server.training import Training, Uses
from raysim.parts.errors import BadInput
from raysim.parts.rng import Stream
from raysim.scenario import Scenario
from raysim.terms import ModelKey, Moment, Traffic, Trip
from raysim.uplink.channel import channels, traffic_of
from raysim.workers.replies import WorkCost
from raysim.world import Cost, Neighbours
from raysim.world.clock import Horizon
from raysim.world.gossip_timeline import GossipTimeline
from raysim.world.pairs_timeline import PairsTimeline
from raysim.world.peers_timeline import Exchanged, Joined, PeersTimeline
from raysim.world.roster import first_delays
from raysim.world.rounds_timeline import RoundsTimeline
from raysim.world.server_happening import Dispatched
from raysim.world.server_timeline import ServerTimeline


def of_server(
    scenario: Scenario,
    samples: NDArray[np.int64],
    partition: Callable[[], Mapping[str, np.ndarray]],
    measure: Callable[[], WorkCost],
    training: Training | None = None,
    horizon: Horizon | None = None,
    levels: Levels | Architectures | None = None,
) -> ServerTimeline:
    """Returns the timeline of a run with a server.

    partition: returns the table `partition`; called only if the policy needs labels. measure: returns the cost of an
    update; called only if delays depend on it. training: that of the clients, for which the timeline may have to wait;
    None in a dry run, which refuses such a scenario. horizon: when it ends; by default as the scenario says. levels: as
    `levels_of` returns them.
    """
    horizon, trigger, labels = horizon or scenario.run.horizon, scenario.central.trigger, None
    if scenario.world.dispatch.policy.needs_labels:
        labels = _label_counts(partition(), len(samples))
    loss = training.loss if training and scenario.needs_losses else None
    uses = Uses(scenario)
    if training is not None:
        training.uses = uses
    given = (scenario.world, trigger, samples, horizon, scenario.seed)
    level = levels.of if levels else None
    if not scenario.needs_cost:
        return ServerTimeline(*given, labels=labels, loss=loss, on_step=uses.stepped, level=level)
    work = Work(scenario, samples, measure(), uses)

    def followed(dispatched: Dispatched) -> Cost:
        assert training is not None
        of = (dispatched.client, dispatched.level, dispatched.had, dispatched.moment)
        return work.cost(*of, training.measured(dispatched))

    follow = followed if scenario.delays_follow_training else None
    return ServerTimeline(*given, work.foreseen, follow, labels, loss, uses.stepped, level)


class Work:
    """What updates of clients cost. cost: as it was measured. uses: counts the updates that steps use."""

    def __init__(self, scenario: Scenario, samples: NDArray[np.int64], cost: WorkCost, uses: Uses) -> None:
        self._scenario, self._samples, self._cost, self._uses = scenario, samples, cost, uses
        self._groups = scenario.groups

    def cost(self, client: int, level: ModelKey, had: int | None, moment: Moment, seen: float) -> Cost:
        """Returns the cost of an update with gradients of so many samples."""
        traffic = self.traffic(client, level, had, moment)
        flops = 3 * self._cost.of(level).forward_flops * seen  # a backward pass costs two forward passes
        return Cost(flops, traffic.down, traffic.up, seen)

    def traffic(self, client: int, level: ModelKey, had: int | None, moment: Moment) -> Traffic:
        """Returns the bytes of an update, and of the message before it."""
        scenario, cost = self._scenario, self._cost.of(level)
        missed, tensors, received = self._uses.missed(had, moment.version), cost.tensors, cost.down
        if cost.first is not None and not moment.version:
            size, received = cost.first
            tensors = tensors._replace(down=size)
        trip = Trip(cost.sizes, tensors, self._groups.name(client), missed)
        up = channels("uplink", [one.at(moment) for one in scenario.sent], cost.up)
        down = channels("downlink", [one.at(moment) for one in scenario.downlink], received)
        return traffic_of(scenario.central.at(moment).traffic(trip), up, down, missed.versions)

    def sent(self, of: Dispatched) -> Traffic:
        """Returns the bytes of a dispatch: of the update, and of the message before it."""
        return self.traffic(of.client, of.level, of.had, of.moment)

    def foreseen(self, client: int, level: ModelKey, had: int | None, moment: Moment) -> Cost:
        """Returns the cost of an update that does not stop early."""
        held, scenario = int(self._samples[client]), self._scenario
        seen = scenario.central.samples_seen(self._groups.local(client), held)
        return self.cost(client, level, had, moment, seen + self._cost.of(level).passes.of(held) / 3)


def levels_of(
    scenario: Scenario, samples: NDArray[np.int64], measure: Callable[[], WorkCost]
) -> Levels | Architectures | None:
    """Returns the level, or the architecture, of each client, and what each costs; None where all train the server's
    model.

    The arguments are those of `of_server`.
    """
    models = scenario.models
    if not scenario.levels and not models:
        return None
    cost, capacity, clients = measure(), scenario.capacity, len(samples)
    work = Work(scenario, samples, cost, Uses(scenario))
    delay, delays = scenario.world.delay, Stream(scenario.seed, "delay")
    times, memory = None, None

    def known(key: ModelKey) -> LevelCost:
        of = cost.of(key)
        one = work.cost(0, key, None, Moment(version=0 if of.first is None else 1), 0.0)
        return LevelCost(of.sizes.parameters, of.forward_flops, of.memory_bytes, one.up_bytes, one.down_bytes)

    keys: tuple[ModelKey, ...] = (1.0, *models)
    if models:
        return Architectures(scenario.groups.keys(models), {key: known(key) for key in keys}, clients)
    costs = {level: known(level) for level in scenario.levels}
    if capacity and capacity.by == "speed":
        held = np.flatnonzero(samples)
        times = np.full(clients, np.inf)
        times[held] = first_delays(held, delay, delays, lambda client: work.foreseen(client, 1.0, None, Moment()))
    if capacity and capacity.by == "memory":
        memory = delay.memory(delays, clients)
    return Levels(capacity, scenario.groups.levels(scenario.exits), clients, scenario.seed, costs, times, memory)


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


def _label_counts(partition: Mapping[str, np.ndarray], clients: int) -> NDArray[np.int64]:
    """Returns how many training samples of each label clients have, (clients, labels)."""
    trained = partition["split"] == "train"
    client, label = partition["client"][trained], partition["label"][trained]
    counts = np.zeros((clients, int(label.max()) + 1), dtype=np.int64)
    counts[client, label] = partition["samples"][trained]
    return counts
