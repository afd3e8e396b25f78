"""Picks clients among those that are idle and available."""

import math

import numpy as np
from numpy.typing import NDArray

from raysim.rng import Stream
from raysim.world.world import World


class Picker:
    """Picks the clients that are dispatched.

    samples: the number of samples that each client trains on, (clients,); a client with none is never picked. idle:
    which clients have samples and are not in flight, bool (clients,); the timeline keeps it up to date.
    """

    def __init__(self, world: World, samples: NDArray[np.int64], seed: int) -> None:
        self.idle = samples > 0
        self._world, self._samples, self._seed = world, samples, seed
        self._draws = Stream(seed, "pick")
        self._mask, self._mask_until = self.idle, 0.0  # who is available, and the time until which that holds

    def pick(self, time: float, round: int, in_flight: int, serial: int) -> list[int]:
        """Returns the clients to dispatch now. serial: the number of the next dispatch in the run.

        Raises ValueError if `picks` names clients that cannot be picked.
        """
        dispatch = self._world.dispatch
        if dispatch.picks is not None:
            return self._scripted(dispatch.picks[round], round)
        wanted = dispatch.per_round or (dispatch.concurrency or 0) - in_flight
        (idle,) = (self.idle & self._available(time)).nonzero()
        if wanted <= 0 or len(idle) == 0:
            return []
        generator = self._draws(serial)
        if wanted == 1:  # takes a tenth of the time of `choice`
            return [int(idle[generator.integers(len(idle))])]
        return sorted(generator.choice(idle, size=min(wanted, len(idle)), replace=False).tolist())

    def next_change(self, time: float) -> float | None:
        """Returns when other clients may be available; None if that never changes."""
        change = self._world.availability.next_change(time)
        return change if change < math.inf else None

    def _available(self, time: float) -> NDArray[np.bool_]:
        if time >= self._mask_until:
            self._mask = self._world.availability.mask(self._seed, len(self.idle), time)
            self._mask_until = self._world.availability.next_change(time)
        return self._mask

    def _scripted(self, picks: tuple[int, ...], round: int) -> list[int]:
        for client in picks:
            if not 0 <= client < len(self.idle):
                must = f"clients by their numbers, 0 to {len(self.idle) - 1}, got {client!r}; correct it"
            elif picks.count(client) > 1:
                must = f"a client once only, got {client} {picks.count(client)} times; take it out"
            elif self._samples[client] == 0:
                must = f"clients with samples to train on, got {client}, which has none; take it out"
            elif not self.idle[client]:
                must = f"idle clients, got {client}, which is under way or gone; pick it after its update has arrived"
            else:
                continue
            raise ValueError(f"world.dispatch.picks: round {round} must pick {must}")
        return list(picks)
