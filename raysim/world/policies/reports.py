"""What clients reported last."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray


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
