"""Decides which clients are dispatched, among those that are idle and available."""

import math

import numpy as np
from numpy.typing import NDArray

from raysim.parts.errors import BadInput
from raysim.parts.rng import Stream
from raysim.world.availability import Always
from raysim.world.policies import Candidates, Reports, UniformPolicy
from raysim.world.roster import Roster, Tiers
from raysim.world.server_happening import Dispatched
from raysim.world.world import World


class Picker:
    """Decides which clients are dispatched each time that the timeline asks, as `world.dispatch` says: by its list of
    picks, each with its probability, or by its policy.

    samples: the number of samples that each client trains on, (clients,); a client with none is never picked. labels:
    how many samples of each label clients have, if the policy needs it, (clients, labels). tiers: those that clients
    are in, each of which picks by itself; None: none. roster: whose idle clients have samples and are not in flight;
    the timeline keeps it up to date. steady: whether any idle client replaces one that has arrived: the one at a place
    of the roster that `draws` draws for the dispatch.
    """

    def __init__(
        self,
        world: World,
        samples: NDArray[np.int64],
        seed: int,
        labels: NDArray[np.int64] | None = None,
        tiers: Tiers | None = None,
    ) -> None:
        self.roster = Roster(samples > 0)
        self._dispatch, self._samples, self._labels, self._tiers = world.dispatch, samples, labels, tiers
        self._in_flight = world.dispatch.in_flight or 0
        self._times = np.zeros_like(samples)  # how often the policy has picked each client
        self._reports = Reports.none(len(samples) if world.dispatch.policy.needs_losses else 0)
        self._presence = world.availability.presence(seed, len(samples))
        self._until = 0.0  # when others may be available than the roster says
        self.draws, self._rounds = Stream(seed, "pick"), Stream(seed, "pick by probability")
        self._uniform = type(world.dispatch.policy) is UniformPolicy
        by_policy = world.dispatch.picks is None and world.dispatch.probability is None
        self.steady = by_policy and self._uniform and tiers is None and type(world.availability) is Always

    def pick(self, time: float, round: int, in_flight: int, serial: int) -> list[int]:
        """Returns the clients to dispatch now. serial: the number of the next dispatch in the run.

        Raises BadInput if clients are given that cannot be picked.
        """
        dispatch = self._dispatch
        if dispatch.picks is not None:
            return [self._given(client, round) for client in dispatch.picks[round]]
        if time >= self._until:
            self.roster.show(self._presence.mask(time))
            self._until = self._presence.next_change(time)
        if dispatch.probability is not None:
            drawn = self._rounds(round).random(len(self._samples)) < dispatch.probability
            return [client for client in np.flatnonzero(drawn).tolist() if client in self.roster]
        if self._tiers is not None:
            picked = list[int]()
            for tier in self._tiers.waiting():
                idle = self.roster.all()
                idle = idle[self._tiers.of[idle] == tier]
                picked += self._of(idle, dispatch.per_tier or 0, round, serial + len(picked))
            return picked
        wanted, size = dispatch.per_round or self._in_flight - in_flight, self.roster.size
        if wanted <= 0 or not size:
            return []
        if self._uniform:  # needs no list of all clients
            places = UniformPolicy().places(size, wanted, self.draws(serial))
            return [self.roster.at(place) for place in places]
        return self._of(self.roster.all(), wanted, round, serial)

    def _given(self, client: int, round: int) -> int:
        """Returns a client that is listed for a round."""
        if not self._samples[client]:
            must = f"clients with samples to train on, got {client}, which has none; take it out"
        elif not self.roster.idle[client]:
            must = f"idle clients, got {client}, which is under way or gone; pick it after its update has arrived"
        else:
            return client
        raise BadInput("world.dispatch.picks", f"round {round} must pick {must}")

    def _of(self, idle: NDArray[np.int64], wanted: int, round: int, serial: int) -> list[int]:
        """Returns the clients that the policy picks. idle: the numbers of those that it may pick, ascending."""
        if not len(idle):
            return []
        candidates = Candidates(idle, self._samples, self._times, round, self._reports, self._labels)
        policy = self._dispatch.policy
        picked = [*map(int, policy.pick(candidates, wanted, self.draws(serial)))]
        known = np.isin(picked, idle).all()
        if not known or len(picked) > wanted or len(set(picked)) < len(picked):
            must = f"at most {wanted} of the idle clients, none of them twice"
            raise BadInput("world.dispatch.policy", f"{policy.name} must pick {must}, got {picked}; correct its `pick`")
        self._times[picked] += 1
        return picked

    def hear(self, dispatched: Dispatched, loss: float, staleness: float) -> None:
        """Takes note of what a client that has arrived reports, if the policy needs losses."""
        duration = dispatched.arrives - dispatched.time
        self._reports.set(dispatched.client, loss, dispatched.round, duration, staleness)

    def next_change(self, time: float) -> float | None:
        """Returns when other clients may be available; None if that never changes."""
        change = self._presence.next_change(time)
        return change if change < math.inf else None

    def next_look(self, time: float, in_flight: int) -> float | None:
        """Returns the next time to pick clients, even if no update arrives until then; None if waiting for arrivals
        is enough. It is asked only where the world has no rounds."""
        short = in_flight < self._in_flight and self.roster.idle.any()
        return self.next_change(time) if short else None
