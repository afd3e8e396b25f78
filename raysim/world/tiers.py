"""Tiers of clients that are about as fast as each other."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from raysim.parts.rng import Stream
from raysim.world.delay import Cost, Delay, duration_of


class Tiers:
    """Tiers of clients, each of which picks anew when all that it picked are back.

    of: the tier of each client, (clients,), where 0 is the fastest; -1 of those that hold no samples.
    """

    def __init__(
        self,
        number: int,
        samples: NDArray[np.int64],
        delay: Delay,
        delays: Stream,
        cost: Callable[[int], Cost] | None = None,
    ) -> None:
        """number: how many tiers there are. samples: how many each client trains on, (clients,). delays: the stream of
        the run's delays, because clients are sorted by their first one. cost: returns the cost of a client's update,
        if the delay needs it."""
        held = np.flatnonzero(samples)
        lasts = [duration_of(delay, delays, client, 0, cost(client) if cost else None) for client in held.tolist()]
        self.of = np.full(len(samples), -1)
        for tier, members in enumerate(np.array_split(held[np.argsort(lasts, kind="stable")], number)):
            self.of[members] = tier
        self._under_way = [0] * number

    def waiting(self) -> list[int]:
        """Returns the tiers of which nobody is under way."""
        return [tier for tier, under_way in enumerate(self._under_way) if not under_way]

    def leaves(self, client: int) -> None:
        """Takes note that a client is dispatched."""
        self._under_way[self.of[client]] += 1

    def returns(self, client: int) -> bool:
        """Takes note that a client has arrived, or is lost. Returns whether it was the last one of its tier."""
        tier = self.of[client]
        self._under_way[tier] -= 1
        return not self._under_way[tier]
