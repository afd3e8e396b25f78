"""Delays, availability, dispatch, topologies and mixing weights."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np

from raysim.parts.part import Fraction, Positive
from raysim.parts.rng import Stream
from raysim.world import Availability, Candidates, Cost, Delay, Distribution, EdgeDelay, Policy, Topology, Weighting
from raysim.world.delay import TimeUnit


class Slow(Delay):
    """Some clients are slow."""

    name: str = "outside_slow"
    unit: TimeUnit = "rounds"
    share: Fraction = 0.5
    """Share of the clients that are slow."""

    def duration(self, stream: Stream, client: int, number: int, cost: Cost | None) -> float:
        return 1.0 if stream(client).random() < self.share else 0.0


class Coin(Distribution):
    """One of two values."""

    name: str = "outside_coin"
    high: Positive = 2.0
    """The larger value; the other one is 1."""

    @property
    def bounds(self) -> tuple[float, float]:
        return 1.0, self.high

    def draw(self, generator: np.random.Generator) -> float:
        return self.high if generator.random() < 0.5 else 1.0


class Message(EdgeDelay, Coin):
    """Messages take one of two times."""

    name: str = "outside_message"


class Lowest(Policy):
    """The idle clients with the lowest numbers."""

    name: str = "outside_lowest"

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> Sequence[int]:
        return list(candidates.idle[:wanted])


class Shifts(Availability):
    """In even rounds, even clients are there; in odd rounds, odd ones."""

    name: str = "outside_shifts"

    def mask(self, seed: int, clients: int, time: float) -> np.ndarray:
        return np.arange(clients) % 2 == int(time) % 2

    def next_change(self, time: float) -> float:
        return int(time) + 1.0


class Wheel(Topology):
    """A ring with a hub."""

    name: str = "outside_wheel"

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        return nx.wheel_graph(peers)


class Tenth(Weighting):
    """A tenth of each message."""

    name: str = "outside_tenth"

    def weight(self, own: int, other: int, largest: int) -> float:
        return 0.1
