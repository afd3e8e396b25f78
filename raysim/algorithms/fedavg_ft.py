"""Federated averaging with fine-tuning by each client (FedAvg+FT).

Collins, Hassani, Mokhtari, Shakkottai, FedAvg with fine tuning: Local updates lead to representation learning, NeurIPS
2022.

Differences from the paper: none. A client's fine-tuned copy is made anew from the current global model whenever it is
evaluated, so each evaluation shows what fine-tuning would give at that point. The code of FeDEQ fine-tunes the model
after 30 % of the rounds; the evaluation after those rounds shows the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.algorithms.fedavg import FedAvg
from raysim.part import Count
from raysim.terms import Record

if TYPE_CHECKING:
    from raysim.local.model import Model
    from raysim.local.task import Task


class FedAvgFT(FedAvg):
    """FedAvg, and each client predicts with its own fine-tuned copy of the global model (Collins et al. 2022)."""

    name: str = "fedavg_ft"
    finetune_epochs: Count = 5
    """Epochs of fine-tuning on a client's own samples. All parameters are trained, otherwise as `local` says."""

    def personal(self, task: Task, message: Record, state: Record) -> Model:
        return task.train(task.received, epochs=self.finetune_epochs).model
