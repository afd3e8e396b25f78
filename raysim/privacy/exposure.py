"""How exposed clients are: how far each could have moved what the server's steps show, known from the timeline alone.

Neighbours are two runs that differ in one client, which sends zeros in one of them: who takes part when is the same.
What noise without sampling releases, however often, is one Gaussian mechanism (Dong, Roth, Su, Gaussian differential
privacy, 2022): its mu is what a client can move the result by, in standard deviations of the noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from raysim.terms import Arrival

_STEPS = 200  # of a bisection, which halves a range each time and ends where doubles end
Shares: TypeAlias = "Mapping[int, float]"
"""Of one step, the weight of each client's updates together, by the largest weight of an update in that step."""


def shares_of(arrivals: Sequence[Arrival], weights: Sequence[float]) -> Shares:
    """Returns the shares of a step. Two updates of one client add up, because it may send the same twice."""
    largest = max(map(abs, weights), default=0.0)
    found: dict[int, float] = {}
    for arrival, weight in zip(arrivals, weights, strict=True) if largest else ():
        found[arrival.client] = found.get(arrival.client, 0.0) + abs(weight) / largest
    return found


class Exposure:
    """What clients are exposed to by steps whose noises are independent.

    squares: by client, the squared distance that it could have moved all results so far, where an update of the largest
    weight moves one step's sum by 1. uses: by client, how many steps used it.
    """

    def __init__(self) -> None:
        self.squares: dict[int, float] = {}
        self.largest = 0.0  # the square of the most exposed client
        self.uses: Counter[int] = Counter()
        self.steps = 0

    def step(self, shares: Shares) -> None:
        """Counts a step."""
        self.steps += 1
        self.uses.update(shares.keys())
        self.count(shares)

    def count(self, shares: Shares) -> None:
        """Adds to `squares` what a step shows."""
        for client, share in shares.items():
            self.add(client, share**2)

    def add(self, client: int, square: float) -> None:
        """Adds to the square of a client."""
        self.squares[client] = found = self.squares.get(client, 0.0) + square
        self.largest = max(self.largest, found)


class TreeExposure(Exposure):
    """What clients are exposed to by the nodes of binary trees over steps, each of which has noise of its own.

    A node shows the sum of the steps below it, as soon as the last of them is done. Nodes of which the run ends before
    the last step are never drawn, and show nothing.
    """

    def __init__(self, restart: int | None) -> None:
        """restart: how many steps a tree is over; None: all."""
        super().__init__()
        self._restart = restart
        self._total: dict[int, float] = {}  # by client: its shares of all steps of the tree
        self._open: list[dict[int, float]] = []  # by level: those of the steps below the node that is to be complete

    def count(self, shares: Shares) -> None:
        place = self.steps if self._restart is None else (self.steps - 1) % self._restart + 1
        if place == 1:
            self._total, self._open = {}, []
        if place & (place - 1) == 0:  # a power of two: the first complete node of one more level
            self._open.append(dict(self._total))
        for level, node in enumerate((self._total, *self._open), start=-1):
            for client, share in shares.items():
                node[client] = node.get(client, 0.0) + share
            if level >= 0 and place % 2**level == 0:
                for client, share in node.items():
                    self.add(client, share**2)
                node.clear()


class MatrixExposure(Exposure):
    """What clients are exposed to by sums of earlier steps that a lower triangular Toeplitz matrix weighs."""

    def __init__(self, column: Callable[[int], NDArray[np.float64]]) -> None:
        """column: returns the first so many numbers of the first column of the matrix, none of which is negative."""
        super().__init__()
        self._column, self._known = column, column(64)
        self._used = np.empty((3, 0))  # of each use so far: its step, the client, and its share
        self._last: dict[int, int] = {}  # by client: the last step that used it
        self.separation = math.inf  # fewest steps from one use of a client to the next

    def count(self, shares: Shares) -> None:
        gaps = (self.steps - self._last[client] for client in shares if client in self._last)
        self.separation = min(self.separation, *gaps, math.inf)
        self._last.update(dict.fromkeys(shares, self.steps))
        if self.steps > len(self._known):
            self._known = self._column(2 * self.steps)
        new = np.array([[self.steps] * len(shares), [*shares.keys()], [*shares.values()]], dtype=float)
        self._used = np.concatenate((self._used, new), axis=1)
        factors = self._known[(self.steps - self._used[0]).astype(int)]
        self._used = self._used[:, keep := factors > 0]  # what a band no longer holds
        moved = np.bincount(self._used[1].astype(int), factors[keep] * self._used[2])
        for client in np.flatnonzero(moved).tolist():
            self.add(client, float(moved[client] ** 2))


def delta_of(mu: float, epsilon: float) -> float:
    """Returns the delta of a Gaussian mechanism for an epsilon: Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)."""
    if mu == 0:
        return 0.0
    near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return math.exp(_log_cdf(near)) - math.exp(epsilon + _log_cdf(far))


@lru_cache(4096)
def epsilon_of(mu: float, delta: float, curve: Callable[[float, float], float] = delta_of) -> float:
    """Returns the least epsilon of a mechanism for a delta; infinite without noise, where mu is infinite.

    curve: returns its delta for mu and an epsilon.
    """
    if not math.isfinite(mu):
        return math.inf
    if curve(mu, 0.0) <= delta:
        return 0.0
    return _border(lambda epsilon: curve(mu, epsilon) <= delta)[1]


def mu_of(epsilon: float, delta: float, curve: Callable[[float, float], float] = delta_of) -> float:
    """Returns the largest mu of a mechanism that keeps to an epsilon and a delta. curve: as for `epsilon_of`."""
    return _border(lambda mu: curve(mu, epsilon) > delta)[0]


def _border(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Returns two neighbouring numbers above 0, of which a condition holds from the second one on; the second one is
    infinite if it holds for no finite number."""
    low, high = 0.0, 1.0
    while high < math.inf and not holds(high):
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def _log_cdf(x: float) -> float:
    """Returns the logarithm of the standard normal distribution function, also far out where that itself is 0."""
    if x > -30:
        return math.log(math.erfc(-x / math.sqrt(2)) / 2)
    square = x * x  # Mills' ratio: an asymptotic series, whose next term is below 1e-9 here
    return (
        -square / 2 - math.log(-x * math.sqrt(2 * math.pi)) + math.log1p(-1 / square + 3 / square**2 - 15 / square**3)
    )
