"""Federated averaging, then fine-tuning.

Collins, Hassani, Mokhtari, Shakkottai, FedAvg with fine tuning: Local updates lead to representation learning, NeurIPS
2022. No difference: the fine-tuned copy is made anew, from the model of the moment, whenever a client's own model is
asked for, so that each evaluation shows what fine-tuning would give there, and the last what it gives in the end. The
code of FeDEQ fine-tunes the model that 30 % of the rounds make, which is what the evaluation after them shows.
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
    """FedAvg, of whose model each client predicts with a copy that it has fine-tuned (Collins et al. 2022)."""

    name: str = "fedavg_ft"
    finetune_epochs: Count = 5
    """On a client's own samples, of all parameters, otherwise as `local` says."""

    def personal(self, task: Task, message: Record, state: Record) -> Model:
        return task.train(task.received, epochs=self.finetune_epochs).model
