"""Federated averaging with body aggregation and body update (FedBABU).

Oh, Kim, Yun, FedBABU: Toward enhanced representation for federated image classification, ICLR 2022, Algorithm 1.

Differences from the paper: none. A client's fine-tuned copy is made anew whenever it is evaluated.
"""

from typing import ClassVar, Literal

from raysim.algorithms.fedper import FedPer
from raysim.algorithms.signatures import Local, Model, Record, Task
from raysim.parts.part import Count


class FedBABU(FedPer):
    """FedAvg of the body under a head that stays random; clients fine-tune to predict (Oh et al. 2022).

    The head is `model.personal`.
    """

    keeps_personal: ClassVar[bool] = False  # they train no head

    name: str = "fedbabu"
    finetune_epochs: Count = 5
    """Epochs of fine-tuning on a client's own samples for an evaluation."""
    finetune: Literal["all", "head", "body"] = "all"
    """What is fine-tuned. The paper compares the three, and prefers `all`."""

    def samples_seen(self, local: Local, samples: int) -> int:
        return local.total_samples(samples)

    def client(self, model: Model) -> Record:
        return {}

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received, part="shared")
        return trained.send(delta=trained.model.shared - message["w"]), state

    def personal(self, task: Task, message: Record, state: Record) -> Model:
        part = {"all": None, "head": "personal", "body": "shared"}[self.finetune]
        return task.train(task.received, part=part, epochs=self.finetune_epochs).model

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        return state
