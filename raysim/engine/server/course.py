"""What follows from a scenario with a server, and from how its data are divided, before anything is trained: the models
of clients, what their updates cost, the noise, and the timeline."""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from raysim.clients.capacity import LevelCost, Levels
from raysim.clients.group import Architectures
from raysim.engine.server import guarantee
from raysim.engine.server.training import Training, Uses
from raysim.parts.rng import Stream
from raysim.privacy.account import NoisePlan
from raysim.scenario import Scenario
from raysim.terms import ModelKey, Moment, Traffic, Trip
from raysim.uplink.channel import channels, traffic_of
from raysim.workers.replies import WorkCost
from raysim.world import Cost
from raysim.world.clock import Horizon
from raysim.world.delay import first_delays
from raysim.world.server_happening import Dispatched
from raysim.world.server_timeline import ServerTimeline


class Course:
    """What a run with a server comes to.

    levels: the level, or the architecture, of each client; None where all train the server's model. plan: of the noise
    of `release`; None without one. account: of the steps that the run will do; None if nothing is accounted for.
    """

    def __init__(
        self,
        scenario: Scenario,
        samples: NDArray[np.int64],
        partition: Callable[[], Mapping[str, np.ndarray]],
        measure: Callable[[], WorkCost],
    ) -> None:
        """samples: the number that each client trains on, (clients,). partition: returns the table `partition`; called
        only if the policy needs labels. measure: returns the cost of an update; called only if something depends on it.

        Raises BadInput if the run cannot be as the scenario says.
        """
        self._scenario, self.samples, self.measure, self._groups = scenario, samples, cache(measure), scenario.groups
        self._uses = Uses(scenario)  # of the timeline that was begun last
        needs_labels = scenario.world.dispatch.policy.needs_labels
        self._labels = _label_counts(partition(), len(samples)) if needs_labels else None
        self.population = scenario.population(samples)
        self.levels = self._levels()
        self.plan: NoisePlan | None = None
        if scenario.release is not None:
            given = (scenario, self.population, lambda: self.timeline(scenario.run.horizon), self.measure)
            self.plan = guarantee.plan(*given)
        self.account = guarantee.account(scenario, self.plan, samples.tolist()) if scenario.privacy else None

    def timeline(self, horizon: Horizon, training: Training | None = None) -> ServerTimeline:
        """Begins the timeline anew.

        horizon: when it ends, unless it ends sooner because of the noise. training: that of the clients, for which the
        timeline may have to wait; None in a dry run, which refuses such a scenario.
        """
        scenario, uses = self._scenario, Uses(self._scenario)
        self._uses = uses
        if training is not None:
            training.uses = uses
        if self.plan is not None:
            horizon = horizon._replace(versions=self.plan.versions)

        def followed(dispatched: Dispatched) -> Cost:
            assert training is not None
            return self._cost(
                dispatched.client, dispatched.level, dispatched.had, dispatched.moment, training.measured(dispatched)
            )

        return ServerTimeline(
            scenario.world,
            scenario.central.trigger,
            self.samples,
            horizon,
            scenario.seed,
            cost=self._foreseen if scenario.world.delay.needs_cost else None,
            measured=followed if scenario.delays_follow_training else None,
            labels=self._labels,
            loss=training.loss if training and scenario.needs_losses else None,
            on_step=uses.stepped,
            level=self.levels.of if self.levels else None,
        )

    # --- costs --------------------------------------------------------------------------------------------------------

    def sent(self, of: Dispatched) -> Traffic:
        """Returns the bytes of a dispatch of the timeline that was begun last: of the update, and of the message before
        it."""
        return self._traffic(of.client, of.level, of.had, of.moment)

    def _traffic(self, client: int, level: ModelKey, had: int | None, moment: Moment) -> Traffic:
        scenario, cost = self._scenario, self.measure().of(level)
        missed, tensors, received = self._uses.missed(had, moment.version), cost.tensors, cost.down
        if cost.first is not None and not moment.version:
            size, received = cost.first
            tensors = tensors._replace(down=size)
        trip = Trip(cost.sizes, tensors, self._groups.name(client), missed)
        up = channels("uplink", [one.at(moment) for one in scenario.sent], cost.up)
        down = channels("downlink", [one.at(moment) for one in scenario.downlink], received)
        return traffic_of(scenario.central.at(moment).traffic(trip), up, down, missed.versions)

    def _cost(self, client: int, level: ModelKey, had: int | None, moment: Moment, seen: float) -> Cost:
        """Returns the cost of an update with gradients of so many samples."""
        traffic = self._traffic(client, level, had, moment)
        flops = 3 * self.measure().of(level).forward_flops * seen  # a backward pass costs two forward passes
        return Cost(flops, traffic.down, traffic.up, seen)

    def _foreseen(self, client: int, level: ModelKey, had: int | None, moment: Moment) -> Cost:
        """Returns the cost of an update that does not stop early."""
        held, scenario = int(self.samples[client]), self._scenario
        seen = scenario.central.samples_seen(self._groups.local(client), held)
        return self._cost(client, level, had, moment, seen + self.measure().of(level).passes.of(held) / 3)

    # --- models -------------------------------------------------------------------------------------------------------

    def _levels(self) -> Levels | Architectures | None:
        scenario, clients, models = self._scenario, len(self.samples), self._scenario.models
        if models:
            keys: tuple[ModelKey, ...] = (1.0, *models)
            return Architectures(scenario.groups.keys(models), {key: self._known(key) for key in keys}, clients)
        if not scenario.levels:
            return None
        capacity, delay, delays = scenario.capacity, scenario.world.delay, Stream(scenario.seed, "delay")
        costs, times, memory = {level: self._known(level) for level in scenario.levels}, None, None
        if capacity and capacity.by == "speed":
            held = np.flatnonzero(self.samples)
            times = np.full(clients, np.inf)
            times[held] = first_delays(held, delay, delays, lambda client: self._foreseen(client, 1.0, None, Moment()))
        if capacity and capacity.by == "memory":
            memory = delay.memory(delays, clients)
        return Levels(capacity, scenario.groups.levels(scenario.exits), clients, scenario.seed, costs, times, memory)

    def _known(self, key: ModelKey) -> LevelCost:
        of = self.measure().of(key)
        one = self._traffic(0, key, None, Moment(version=0 if of.first is None else 1))
        return LevelCost(of.sizes.parameters, of.forward_flops, of.memory_bytes, one.up, one.down)


def _label_counts(partition: Mapping[str, np.ndarray], clients: int) -> NDArray[np.int64]:
    """Returns how many training samples of each label clients have, (clients, labels)."""
    trained = partition["split"] == "train"
    client, label = partition["client"][trained], partition["label"][trained]
    counts = np.zeros((clients, int(label.max()) + 1), dtype=np.int64)
    counts[client, label] = partition["samples"][trained]
    return counts
