"""Policies, which pick clients among those that are idle and available: their base, what they know, and those that ask
for nothing that clients report."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raysim.parts.errors import BadInput
from raysim.parts.part import Count, NonNegative, Part


class Reports(NamedTuple):
    """What each client reported last, (clients,) each; NaN for one that has not reported yet."""

    loss: NDArray[np.float64]  # of the model that it received, on its first mini-batch; infinite if it was not finite
    round: NDArray[np.float64]  # of its dispatch; where the world has no rounds, the number of server steps then
    duration: NDArray[np.float64]  # from dispatch to arrival, in virtual time
    staleness: NDArray[np.float64]  # of its update at its arrival, as `world.staleness` counts it

    @classmethod
    def none(cls, clients: int) -> Self:
        """Returns the reports before any client has reported."""
        return cls(*np.full((4, clients), np.nan))

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which clients have reported, (clients,)."""
        return ~np.isnan(self.loss)

    def set(self, client: int, loss: float, round: int, duration: float, staleness: float) -> None:
        """Takes note of a client's report."""
        for column, value in zip(self, (loss, round, duration, staleness), strict=True):
            column[client] = value


class Candidates(NamedTuple):
    """What a policy knows when it picks clients. Except for `idle`, arrays have a row for each client of the run."""

    idle: NDArray[np.int64]  # numbers of those that can be picked, ascending, (idle,); at least one
    samples: NDArray[np.int64]  # number of samples that each trains on, (clients,)
    times: NDArray[np.int64]  # how often each has been picked so far, (clients,)
    round: int  # or, where the world has no rounds, the number of server steps so far
    reports: Reports  # what each reported last; without rows, unless the policy needs losses
    labels: NDArray[np.int64] | None = None  # (clients, labels): how many samples of each; None unless it needs them


class Policy(Part):
    """How clients are picked among those that are idle and available. A subclass adds its `name`."""

    name: str

    needs_losses: ClassVar[bool] = False
    """Whether it needs to know what clients reported. The timeline then waits, before it picks, for the training of
    those that have arrived."""

    @abstractmethod
    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> Sequence[int]:
        """Returns some of the idle clients, at most as many as are wanted, none of them twice.

        They are dispatched in this order, in which updates that arrive at one time count: a drawn one favours nobody.

        candidates: what is known of all clients; its arrays are not to be changed. wanted: at least 1; there may be
        fewer idle clients. generator: draws of this dispatch.
        """

    @property
    def needs_labels(self) -> bool:
        """Whether it needs to know how many samples of each label clients have."""
        return False

    def problems(self, clients: int, classes: int | None) -> Iterator[tuple[str, str]]:
        """Yields what does not fit the data, each with its key.

        clients: how many there are. classes: how many labels the data have; None if only their files tell.
        """
        yield from ()


class UniformPolicy(Policy):
    """Clients are picked uniformly at random."""

    name: str = "uniform"

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> list[int]:
        picked: list[int] = candidates.idle[self.places(len(candidates.idle), wanted, generator)].tolist()
        return picked

    def places(self, idle: int, wanted: int, generator: np.random.Generator) -> list[int]:
        """Returns the places of those that are picked in the list of idle clients. idle: its length."""
        if wanted == 1:  # takes a tenth of the time of `choice`
            return [int(generator.integers(idle))]
        places: list[int] = generator.choice(idle, size=min(wanted, idle), replace=False).tolist()
        return places


class BySamples(Policy):
    """Clients with more samples are picked more often: in each draw, with probability in proportion to samples."""

    name: str = "by_samples"

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> list[int]:
        return draw(candidates.idle, candidates.samples, wanted, generator)


class WeightedPolicy(Policy):
    """Clients are picked by weights that are given: in each draw, with probability in proportion to them."""

    name: str = "weighted"
    weights: Annotated[tuple[NonNegative, ...], Field(min_length=1, examples=[[1.0, 2.0, 0.5]])]
    """A weight for each client. A client of weight 0 is never picked."""

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> list[int]:
        return draw(candidates.idle, np.array(self.weights), wanted, generator)

    def problems(self, clients: int, classes: int | None) -> Iterator[tuple[str, str]]:
        if len(self.weights) != clients:
            yield "weights", f"must have a weight for each of {clients} clients, got {len(self.weights)}; correct it"
        if not any(self.weights):
            yield "weights", "must have a weight of more than 0, or no client is ever picked, got none; raise some"


def draw(
    idle: NDArray[np.int64],
    weights: NDArray[np.float64] | NDArray[np.int64],
    wanted: int,
    generator: np.random.Generator,
) -> list[int]:
    """Returns at most as many clients as are wanted, drawn one after another in proportion to their weights.

    idle: the clients to draw from. weights: those of all clients, (clients,); one of weight 0 is never drawn.
    """
    idle = idle[weights[idle] > 0]
    if len(idle) == 0:
        return []
    shares = weights[idle] / weights[idle].sum()
    drawn: list[int] = generator.choice(idle, size=min(wanted, len(idle)), replace=False, p=shares).tolist()
    return drawn


class RoundRobin(Policy):
    """Clients take turns: those that were picked least often come first and, among them, the lowest numbers.

    A client that is away or under way when its turn comes is picked as soon as it can be.
    """

    name: str = "round_robin"

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> list[int]:
        idle = candidates.idle
        picked: list[int] = idle[candidates.times[idle].argsort(kind="stable")[:wanted]].tolist()
        return picked


class Stratified(Policy):
    """Equal numbers of clients are picked from each of several strata, and uniformly at random within a stratum.

    If the numbers cannot be equal, it is drawn anew at each pick which strata give one more. A stratum with too few
    idle clients gives all, and the others more.
    """

    name: str = "stratified"
    by: Literal["label", "size"] = "label"
    """label: a stratum is of all clients with the same most frequent label, the lowest one if there are several.
    size: strata are of equally many clients, from those with the fewest samples to those with the most."""
    strata: Count = 4
    """Number of strata by size. By label, there is one for each label."""

    @property
    def needs_labels(self) -> bool:
        return self.by == "label"

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> list[int]:
        shuffled = generator.permutation(candidates.idle)
        stratum = self.strata_of(candidates)[shuffled]
        grouped = stratum.argsort(kind="stable")
        starts = np.searchsorted(stratum[grouped], stratum[grouped])  # of each one's stratum among those grouped
        turn = np.empty_like(grouped)
        turn[grouped] = np.arange(len(grouped)) - starts  # how many of its stratum go before it
        order = generator.permutation(int(stratum.max()) + 1)
        picked: list[int] = shuffled[np.lexsort((order[stratum], turn))[:wanted]].tolist()
        return picked

    def strata_of(self, candidates: Candidates) -> NDArray[np.int64]:
        """Returns the number of each client's stratum, (clients,)."""
        if self.by == "label":
            assert candidates.labels is not None
            if candidates.labels.shape[1] == 1:
                raise BadInput(
                    "world.dispatch.policy.by", "must be size, because clients' samples have no labels, or only one"
                )
            most: NDArray[np.int64] = candidates.labels.argmax(axis=1)
            return most
        held = np.flatnonzero(candidates.samples)
        strata = np.zeros(len(candidates.samples), dtype=np.int64)
        strata[held[candidates.samples[held].argsort(kind="stable")]] = np.arange(len(held)) * self.strata // len(held)
        return strata

    def problems(self, clients: int, classes: int | None) -> Iterator[tuple[str, str]]:
        if self.by == "label" and classes == 0:
            yield "by", "must be size, because the data have no labels, got label"
        if self.by == "size" and self.strata > clients:
            yield "strata", f"must be at most the number of clients, {clients}, got {self.strata}; lower it"
