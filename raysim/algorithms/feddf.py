"""Ensemble distillation at the server (FedDF).

Lin, Kong, Stich, Jaggi, Ensemble distillation for robust model fusion in federated learning, NeurIPS 2020, Algorithm 1.
Zhu et al. 2025 tune `server_lr` over 1e-5, 1e-4, 1e-3 and `server_epochs` over 1, 10, 20.

Algorithm 3 is that with several architectures. Differences from the paper: the student trains for a fixed number of
epochs, with a constant learning rate and without clipping gradients, where the authors train with a cosine schedule
until a validation set shows no more gain. No client's model is left out for being bad. Late updates are discarded, and
a round without any update in time changes nothing. After one with a single update, the student is its teacher, and is
not trained: only rounding would be learnt.
"""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import ClassVar, Literal

from raysim.algorithms.fedavg import by_samples
from raysim.algorithms.hybrid import Hybrid
from raysim.algorithms.signatures import Arrivals, Model, ServerTask, Task, Tensor
from raysim.parts.part import Positive
from raysim.terms import Population, Record, Round


class FedDF(Hybrid):
    """FedAvg, and each average is then trained to predict what the clients' models predict (Lin et al. 2020).

    They predict the server's inputs, whose labels are not used, so that any inputs will do. Each client's model
    predicts in eval mode, with its own BatchNorm statistics. The server holds all models of a step at once. Where
    clients have several architectures, there is a student of each: it begins with the average of the clients that have
    it, or where it was if none of them reported, and learns what the models of all clients predict together.
    """

    mixes_models: ClassVar[bool] = True
    steps_apart: ClassVar[bool] = True

    sends: ClassVar[Literal["difference", "model"]] = "model"

    name: str = "feddf"
    ensemble: Literal["logits", "probabilities"] = "logits"
    """Which outputs of the clients' models are averaged."""
    temperature: Positive = 1.0
    """Temperature T: outputs are softmax(logits / T), both of the clients' models and of the student."""

    @property
    def trigger(self) -> Round:
        return Round(late="discard")

    def weigh(self, arrivals: Arrivals, population: Population) -> None:
        return None

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received)
        trained.log()
        # Not named "buffers", because the server would get only their mean.
        return {"w": trained.w, "statistics": trained.model.buffers}, state

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Record:
        student = task.received
        if reported := "w" in updates:
            weights = updates["w"].new_tensor(by_samples(arrivals))
            student = student.replace(w=weights @ updates["w"], buffers=weights @ updates["statistics"])
        teachers = [
            (of, of.received.replace(w=w, buffers=buffers))
            for of, theirs in task.together or [(task, updates)]
            for w, buffers in zip(theirs["w"], theirs["statistics"], strict=True)
        ]
        if self.server_epochs and (len(teachers) > 1 or not reported):
            if "target" not in task.shared:
                task.shared["target"] = self.target(teachers)
            data = task.relabelled(task.shared["target"])
            student = self.fit(task, student, data=data, loss=self.divergence)
        return {"w": student.w, "buffers": student.buffers}

    def target(self, teachers: Sequence[tuple[ServerTask, Model]]) -> Tensor:
        """Returns the probabilities that the teachers predict together for each input, (n, ..., classes).

        teachers: each with the task of its architecture.
        """
        outputs = (self._output(task.outputs(teacher)) for task, teacher in teachers)  # one at a time: they are many
        mean = reduce(add, outputs) / len(teachers)
        return mean if self.ensemble == "probabilities" else (mean / self.temperature).softmax(-1)

    def _output(self, logits: Tensor) -> Tensor:
        return (logits / self.temperature).softmax(-1) if self.ensemble == "probabilities" else logits

    def divergence(self, logits: Tensor, target: Tensor) -> Tensor:
        """Returns the mean over inputs of KL(target || softmax(logits / T)), 0-d. Both are (n, ..., classes)."""
        student = (logits / self.temperature).log_softmax(-1)
        return (target.xlogy(target) - target * student).sum(-1).mean()
