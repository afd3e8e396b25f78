"""Ensemble distillation at the server (FedDF).

Lin, Kong, Stich, Jaggi, Ensemble distillation for robust model fusion in federated learning, NeurIPS 2020, Algorithm 1.
Zhu et al. 2025 tune `server_lr` over 1e-5, 1e-4, 1e-3 and `server_epochs` over 1, 10, 20.

Algorithm 3 is that with several architectures. Differences from the paper: the student trains for a fixed number of
epochs, with a constant learning rate and without clipping gradients, where the authors train with a cosine schedule
until a validation set shows no more gain. No client's model is left out for being bad. A round without any update in
time changes nothing. If the student is its only teacher, it is not trained: only rounding would be learnt.

The server can step by a buffer, too, which is new. Teachers are then the models of the buffer's updates, as they were
sent; in the mean of their outputs, a model of staleness s has the weight S(s) over the sum of these. The student of an
architecture begins with (1 - a) w + sum_i c_i w_i, where w is its last model, c_i = S(s_i) n_i / n over the updates of
the buffer that have this architecture, with n samples in all, and a is the sum of c_i. Clients send models, so each
adds its difference from w, and not from the model that it received.
"""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import ClassVar, Literal

from raysim.algorithms.hybrid import Hybrid
from raysim.algorithms.signatures import Arrivals, Model, Population, Record, ServerTask, Task, Tensor
from raysim.algorithms.staleness import Buffered
from raysim.parts.part import Positive


class FedDF(Buffered, Hybrid):
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

    def weigh(self, arrivals: Arrivals, population: Population) -> None:
        return None

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received)
        trained.log()
        # Not named "buffers", because the server would get only their mean.
        return {"w": trained.w, "statistics": trained.model.buffers}, state

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Record:
        student, share = task.received, 0.0
        if "w" in updates:
            counts = [a.samples * factor for a, factor in zip(arrivals, self.factors(arrivals), strict=True)]
            share = sum(counts) / sum(a.samples for a in arrivals)
            weights = updates["w"].new_tensor([count / (sum(counts) or 1.0) for count in counts])
            w, buffers = weights @ updates["w"], weights @ updates["statistics"]
            if share != 1:  # some are stale
                w, buffers = student.w.lerp(w, share), student.buffers.lerp(buffers, share)
            student = student.replace(w=w, buffers=buffers)
        teachers = [
            (factor, of, of.received.replace(w=w, buffers=buffers))
            for of, theirs, sent in task.together or [(task, arrivals, updates)]
            for factor, w, buffers in zip(self.factors(theirs), sent["w"], sent["statistics"], strict=True)
            if factor
        ]
        if self.server_epochs and teachers and (len(teachers) > 1 or share != 1):
            if "target" not in task.shared:
                task.shared["target"] = self.target(teachers)
            data = task.relabelled(task.shared["target"])
            student = self.fit(task, student, data=data, loss=self.divergence)
        return {"w": student.w, "buffers": student.buffers}

    def target(self, teachers: Sequence[tuple[float, ServerTask, Model]]) -> Tensor:
        """Returns the probabilities that the teachers predict together for each input, (n, ..., classes).

        teachers: each with its weight, which need not sum to 1, and with the task of its architecture.
        """
        outputs = (weight * self._output(of.outputs(teacher)) for weight, of, teacher in teachers)  # one at a time
        mean = reduce(add, outputs) / sum(weight for weight, _, _ in teachers)
        return mean if self.ensemble == "probabilities" else (mean / self.temperature).softmax(-1)

    def _output(self, logits: Tensor) -> Tensor:
        return (logits / self.temperature).softmax(-1) if self.ensemble == "probabilities" else logits

    def divergence(self, logits: Tensor, target: Tensor) -> Tensor:
        """Returns the mean over inputs of KL(target || softmax(logits / T)), 0-d. Both are (n, ..., classes)."""
        student = (logits / self.temperature).log_softmax(-1)
        return (target.xlogy(target) - target * student).sum(-1).mean()
