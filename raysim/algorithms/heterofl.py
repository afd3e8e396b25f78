"""Clients with narrower models than the server's, averaged element by element (HeteroFL).

Diao, Ding, Tarokh, HeteroFL: Computation and communication efficient federated learning for heterogeneous clients, ICLR
2021, Algorithm 1. A client of level p trains the first ceil(p n) of n units of each hidden layer (`capacity`); of
attention, those of each head. Each parameter becomes the mean over the clients that hold it, and stays where none does.

Differences from the paper: the server adds means of differences, which are the paper's means of models where no update
is stale; so it can step by a buffer, too, which is new. BatchNorm's statistics are collected by samples and not by
batches, so a last small batch counts for what it has. As in the authors' code, labels that a client lacks have a logit
of 0, and it has no part in the mean of their rows in the last layer, masked or not.
"""

from collections.abc import Callable
from typing import ClassVar, Literal

from raysim.algorithms.signatures import Model, Record, Task, Tensor, TorchModule
from raysim.algorithms.sliced import Sliced


class HeteroFL(Sliced):
    """Averages models of several widths, each parameter over the clients that hold it (Diao et al. 2021)."""

    holds_labels: ClassVar[bool] = True
    pools_statistics: ClassVar[bool] = True

    name: str = "heterofl"
    weights: Literal["uniform", "samples"] = "uniform"
    """How the clients that hold a parameter are weighted: alike, or by their numbers of samples."""
    masked: bool = True
    """Whether the logits of labels that a client lacks are 0, in its training and where its own model is evaluated."""
    scaled: bool = True
    """Whether what leaves a hidden layer of a client of level p is divided by p in training."""

    def prepare(self, module: TorchModule, level: float) -> None:
        from raysim.local.batch_norm import tracking
        from raysim.models.widths import divide_hidden

        for norm in tracking(module).values():
            vars(norm)["momentum"] = 0.0  # so that running statistics stay as they are
        if self.scaled and level < 1:
            divide_hidden(module, level)

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received, loss=self._loss(task))
        trained.log()
        delta, rows = trained.w - message["w"], task.rows
        return {"delta": delta if rows is None else delta * rows}, state

    def personal(self, task: Task, message: Record, state: Record) -> Model | Callable[[Tensor], Tensor]:
        if not self._masks(task):
            return task.received
        return lambda inputs: masked(task.predict(task.received, inputs), task.own_labels())

    def _masks(self, task: Task) -> bool:
        return self.masked and task.rows is not None

    def _loss(self, task: Task) -> Callable[[Tensor, Tensor], Tensor] | None:
        """Returns the loss of a client; None for that of the data."""
        if not self._masks(task):
            return None
        labels = task.own_labels()
        return lambda outputs, targets: task.loss(masked(outputs, labels), targets)


def masked(outputs: Tensor, labels: Tensor) -> Tensor:
    """Returns logits (n, ..., classes), or (n, classes, height, width), with 0 for all but some labels."""
    classes = 1 if outputs.ndim == 4 else outputs.ndim - 1
    kept = outputs.new_zeros(outputs.shape[classes]).index_fill(0, labels.to(outputs.device), 1.0).bool()
    shape = [1] * outputs.ndim
    shape[classes] = -1
    return outputs.masked_fill(~kept.view(shape), 0.0)
