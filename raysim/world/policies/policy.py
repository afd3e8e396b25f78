"""The base of policies, which pick clients among those that are idle and available, and what they know."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from raysim.parts.part import Part


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
