"""Policies that go by what clients reported last, such as their losses."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raysim.parts.part import Clients, Fraction, NonNegative, Positive, Unit
from raysim.world.policies.policy import Candidates, Policy, draw


class PowerOfChoice(Policy):
    """Among `candidates` clients drawn by samples, those whose last known losses are the largest are picked.

    Cho, Wang, Joshi, Towards understanding biased client selection in federated learning, AISTATS 2022: the variant
    rpow-d, which knows a client's loss from its last training, so that candidates compute and send nothing. As there,
    the loss of a client that has not reported yet is infinite. Here it is that of the first mini-batch, before
    training, instead of the mean over all mini-batches.
    """

    name: str = "power_of_choice"
    candidates: Annotated[Clients, Field(examples=[8])]
    """How many of the idle clients are drawn, in each draw with probability in proportion to samples: d in the paper.
    At least as many are drawn as are wanted."""

    needs_losses: ClassVar[bool] = True

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> list[int]:
        drawn = np.array(draw(candidates.idle, candidates.samples, max(self.candidates, wanted), generator))
        loss = candidates.reports.loss[drawn]
        order = np.where(np.isnan(loss), -np.inf, -loss).argsort(kind="stable")  # among equals, the first drawn
        picked: list[int] = drawn[order[:wanted]].tolist()
        return picked

    def problems(self, clients: int, classes: int | None) -> Iterator[tuple[str, str]]:
        if self.candidates > clients:
            yield "candidates", f"must be at most the number of clients, {clients}, got {self.candidates}; lower it"


class Exploring(Policy):
    """Some clients are picked for the utility of what they reported last, others because they have not reported yet.

    The part of those others is `explore` at first, times `explore_decay` after each round, but at least
    `explore_least`. They are drawn uniformly. Where there are too few of one sort, more of the other are picked.
    """

    explore: Fraction = 0.9
    """Part of those picked in the first round that are clients that have not reported yet."""
    explore_decay: Fraction = 0.98
    """By what that part is multiplied after each round or, where the world has no rounds, after each server step."""
    explore_least: Fraction = 0.2
    """What that part does not fall below."""

    needs_losses: ClassVar[bool] = True

    @abstractmethod
    def utilities(self, candidates: Candidates) -> NDArray[np.float64]:
        """Returns how useful it is to pick a client, (clients,): at least 0, NaN for one that has not reported yet."""

    @abstractmethod
    def exploit(
        self, known: NDArray[np.int64], utility: NDArray[np.float64], wanted: int, generator: np.random.Generator
    ) -> list[int]:
        """Returns the `wanted` clients to pick for their utility. known: the idle ones that have reported, at
        least as many. utility: of all clients, (clients,); finite for those."""

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> Sequence[int]:
        known = candidates.idle[candidates.reports.known[candidates.idle]]
        unknown = candidates.idle[~candidates.reports.known[candidates.idle]]
        part = max(self.explore * self.explore_decay**candidates.round, self.explore_least)
        exploring = int(part * wanted + generator.random())  # rounded up as often as its fraction says
        exploring = min(max(exploring, wanted - len(known)), len(unknown))
        found: list[int] = generator.choice(unknown, size=exploring, replace=False).tolist()
        exploiting = min(wanted - exploring, len(known))
        if exploiting == 0:
            return found
        utility = np.minimum(self.utilities(candidates), np.finfo(np.float64).max / len(candidates.samples))
        return found + self.exploit(known, utility, exploiting, generator)


def statistical_utility(candidates: Candidates) -> NDArray[np.float64]:
    """Returns |B_i| sqrt(loss_i^2), where B_i are a client's samples, (clients,); NaN for one that has not reported."""
    utility: NDArray[np.float64] = candidates.samples.astype(np.float64) * np.abs(candidates.reports.loss)
    return utility


class Oort(Exploring):
    """Clients with large losses, many samples and short delays are picked more often.

    Lai, Zhu, Madhyastha, Chowdhury, Oort: efficient federated learning via guided participant selection, OSDI 2021,
    algorithm 1. In round R, the utility of a client that last took part in round L and took t is

        (|B| sqrt(loss^2) + sqrt(0.1 log R / L)) * (T / t)^alpha, the last factor only if t > T.

    Of those whose utility is at least `cutoff` times that of the last one wanted, clients are drawn in proportion to
    it. loss is that of the first mini-batch, before training, where the paper has the root mean square over samples. T
    is given and stays; the paper's pacer, which raises it, and its clipping and removal of outliers are left out. Who
    has not reported yet is drawn uniformly, because nothing is known of its speed.
    """

    name: str = "oort"
    preferred: Annotated[Positive, Unit("virtual time")] | None = None
    """T: a client that took longer is less useful. null: all times are as good."""
    alpha: NonNegative = 2.0
    """How much less useful a slow client is."""
    cutoff: Fraction = 0.95
    """c: which part of the utility of the last one wanted a client must have."""

    def utilities(self, candidates: Candidates) -> NDArray[np.float64]:
        reports, now = candidates.reports, candidates.round + 1  # rounds count from 1
        utility: NDArray[np.float64] = statistical_utility(candidates)
        utility = utility + np.sqrt(0.1 * np.log(now) / (reports.round + 1))
        if self.preferred is not None:
            utility = utility / np.maximum(reports.duration / self.preferred, 1.0) ** self.alpha
        return utility

    def exploit(
        self, known: NDArray[np.int64], utility: NDArray[np.float64], wanted: int, generator: np.random.Generator
    ) -> list[int]:
        last = np.sort(utility[known])[-wanted]
        good = known[utility[known] >= self.cutoff * last]
        return draw(good, np.maximum(utility, np.finfo(np.float64).tiny), wanted, generator)


class Pisces(Exploring):
    """Clients with large losses, many samples and little staleness are picked; it is meant for `concurrency`.

    Jiang, Wang, Li, Li, Pisces: efficient federated learning via guided asynchronous training, SoCC 2022. The utility
    of a client is |B| sqrt(loss^2) / (staleness + 1)^beta, and those with the most are picked, the lowest numbers
    among equals. loss is that of the first mini-batch, before training, where the paper has the root mean square over
    samples; staleness is that of the client's last update, where the paper has a mean of its last ones. The removal of
    clients whose losses are outliers is left out, and so is the pace of aggregation, which is the algorithm's matter.
    """

    name: str = "pisces"
    beta: NonNegative = 0.5
    """How much less useful a stale client is."""

    def utilities(self, candidates: Candidates) -> NDArray[np.float64]:
        discount: NDArray[np.float64] = (candidates.reports.staleness + 1) ** self.beta
        return statistical_utility(candidates) / discount

    def exploit(
        self, known: NDArray[np.int64], utility: NDArray[np.float64], wanted: int, generator: np.random.Generator
    ) -> list[int]:
        best: list[int] = known[(-utility[known]).argsort(kind="stable")[:wanted]].tolist()
        return best
