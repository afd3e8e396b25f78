"""What a policy knows when it picks clients."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raysim.world.policies.reports import Reports


class Candidates(NamedTuple):
    """What a policy knows when it picks clients. Except for `idle`, arrays have a row for each client of the run."""

    idle: NDArray[np.int64]  # numbers of those that can be picked, ascending, (idle,); at least one
    samples: NDArray[np.int64]  # number of samples that each trains on, (clients,)
    times: NDArray[np.int64]  # how often each has been picked so far, (clients,)
    round: int  # or, where the world has no rounds, the number of server steps so far
    reports: Reports  # what each reported last; without rows, unless the policy needs losses
    labels: NDArray[np.int64] | None = None  # (clients, labels): how many samples of each; None unless it needs them
