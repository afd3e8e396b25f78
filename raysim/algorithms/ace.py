"""Asynchronous federated learning with the engagement of all clients (ACE).

Chang, Yao, Krishnamurthy, Shelton, Chakraborty, Swami, Oymak, Roy-Chowdhury, Mitigating participation imbalance bias in
asynchronous federated learning, arXiv 2511.19066, 2025.

Differences from the paper: there, every client's cache is filled before the first step; here, the update of a client
that has not taken part yet counts as 0. Caches are kept as clients' states, as in `mifa`.
"""

from typing import ClassVar

from raysim.algorithms.mifa import MIFA
from raysim.terms import Buffer


class ACE(MIFA):
    """The server moves, at every arrival, along the mean of the last updates of all clients (Chang et al. 2025).

    So fast clients do not count more than slow ones.
    """

    trigger: ClassVar[Buffer] = Buffer(1)

    name: str = "ace"
