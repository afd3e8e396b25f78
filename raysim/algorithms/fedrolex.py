"""Narrower models whose slice of the server's moves on with each version (FedRolex).

Alam, Liu, Yan, Zhang, FedRolex: Model-heterogeneous federated learning with rolling sub-model extraction, NeurIPS 2022,
Algorithm 1. In version t of the model, a client of level p trains the units t, t + 1, ..., t + ceil(p n) - 1 modulo n
of each hidden layer of n units, so that all parameters are trained alike often.

Differences from the paper: those of heterofl, whose aggregation it has, and with which it can step by a buffer, too:
the window is then that of the version that a client received. The authors' code moves the window the other way.
"""

from raysim.algorithms.heterofl import HeteroFL


class FedRolex(HeteroFL):
    """HeteroFL with a window of units that moves on by one with each version of the model (Alam et al. 2022)."""

    name: str = "fedrolex"

    def first_unit(self, version: int) -> int:
        return version
