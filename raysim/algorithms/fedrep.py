"""A shared representation, with a head of each client's own that is fitted to it (FedRep).

Collins, Hassani, Mokhtari, Shakkottai, Exploiting shared representations for personalized federated learning, ICML
2021, Algorithm 1.

Differences from the paper: as in the authors' code, the body is trained for epochs of mini-batch steps, where the paper
takes one gradient step. Unlike in that code, clients do not fit their heads once more at the end.
"""

from typing import Annotated

from pydantic import NonNegativeInt

from raysim.algorithms.fedper import FedPer
from raysim.algorithms.signatures import Record, Task
from raysim.parts.part import Unit


class FedRep(FedPer):
    """FedAvg of the shared part; each client trains first its own head, then that part (Collins et al. 2021).

    The head is `model.personal`. The global model is the shared part with the initial head. BatchNorm's statistics
    belong to the shared part, and also change while the head alone is trained.
    """

    name: str = "fedrep"
    head_epochs: Annotated[NonNegativeInt, Unit("epochs")] = 10
    """Epochs of training the head, before `local.epochs` of training the shared part. The code of FeDEQ takes 3."""

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        return self._train(task, message, state, part="shared")
