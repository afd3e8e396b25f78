"""Ensemble distillation.

Lin, Kong, Stich, Jaggi, Ensemble distillation for robust model fusion in federated learning, NeurIPS 2020, Algorithm 1.
Differences: the student trains for a number of epochs, with a constant learning rate and without clipped gradients,
where the authors train until a validation set no longer gains, with a cosine schedule; no client's model is left out
for being bad. Late updates are discarded, and a round in which none is in time changes nothing. Zhu et al. 2025 tune
`server_lr` over 1e-5, 1e-4, 1e-3 and `server_epochs` over 1, 10, 20.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Literal

from raysim.algorithms.fedavg import by_samples
from raysim.algorithms.hybrid import Hybrid
from raysim.part import Positive
from raysim.terms import Arrival, Population, Record, Round

if TYPE_CHECKING:
    from torch import Tensor

    from raysim.local.model import Model
    from raysim.local.server_task import ServerTask
    from raysim.local.task import Task


class FedDF(Hybrid):
    """FedAvg whose average then learns from the clients' models what they predict together (Lin et al. 2020).

    They predict the server's inputs, whose labels are not used: they may be of other data. Each predicts in eval mode,
    with BatchNorm statistics of its own. The server holds all models that a step uses at once.
    """

    name: str = "feddf"
    ensemble: Literal["logits", "probabilities"] = "logits"
    """Of which of the clients' outputs the mean is taken."""
    temperature: Positive = 1.0
    """T: outputs are softmax(logits / T), of the clients and of the student."""

    @property
    def trigger(self) -> Round:
        return Round(late="discard")

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> None:
        return None

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received)
        # Not as "buffers", of which the server would get the mean only.
        return {"w": trained.w, "statistics": trained.model.buffers, **trained.logged}, state

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: ServerTask) -> Record:
        models, statistics = updates["w"], updates["statistics"]
        weights = models.new_tensor(by_samples(arrivals))
        student = task.received.replace(w=weights @ models, buffers=weights @ statistics)
        if self.server_epochs:
            teachers = [student.replace(w=w, buffers=b) for w, b in zip(models, statistics, strict=True)]
            data = task.relabelled(self.target(task, teachers))
            student = self.fit(task, student, data=data, loss=self.divergence)
        return {"w": student.w, "buffers": student.buffers}

    def target(self, task: ServerTask, teachers: Sequence[Model]) -> Tensor:
        """What the teachers predict together: probabilities of each input, (n, ..., classes)."""
        outputs = (self._output(task.outputs(teacher)) for teacher in teachers)  # one at a time: they are many
        mean = reduce(add, outputs) / len(teachers)
        return mean if self.ensemble == "probabilities" else (mean / self.temperature).softmax(-1)

    def _output(self, logits: Tensor) -> Tensor:
        return (logits / self.temperature).softmax(-1) if self.ensemble == "probabilities" else logits

    def divergence(self, logits: Tensor, target: Tensor) -> Tensor:
        """KL(target || softmax(logits / T)), 0-d, the mean over inputs. Both (n, ..., classes)."""
        student = (logits / self.temperature).log_softmax(-1)
        return (target.xlogy(target) - target * student).sum(-1).mean()
