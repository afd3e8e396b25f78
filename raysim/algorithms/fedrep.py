"""A shared representation, and heads that are fitted to it.

Collins, Hassani, Mokhtari, Shakkottai, Exploiting shared representations for personalized federated learning, ICML
2021, Algorithm 1. Difference: as in the authors' code, the body too is trained for epochs of mini-batch steps, where
the paper takes a single gradient step; and no client fits its head once more at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import NonNegativeInt

from raysim.algorithms.fedper import FedPer
from raysim.terms import Record

if TYPE_CHECKING:
    from raysim.local.task import Task


class FedRep(FedPer):
    """FedAvg of the shared part; each client first fits its head to it, then it to the head (Collins et al. 2021).

    BatchNorm's statistics, which are of the shared part, also move while the head alone is trained.
    """

    name: str = "fedrep"
    head_epochs: NonNegativeInt = 10
    """For the head, before `local.epochs` for the shared part; 3 in the code of FeDEQ."""

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        return self._train(task, message, state, part="shared")
