"""Models and algorithms of the tests' own, on which it depends whether clients can be trained together."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from raysim.algorithms import FedAvg, Record


class Attentive(nn.Module):
    """Fused attention between the rows of an image."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.qkv, self.head = nn.Linear(8, 24), nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x.reshape(-1, 1, 8, 8)).chunk(3, -1)
        return self.head(F.scaled_dot_product_attention(q, k, v).flatten(1))


class Centred(nn.Module):
    """Outputs depend on who else is in a batch, and no buffer shows it."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x.flatten(1) - x.flatten(1).mean(0))


class Counting(nn.Module):
    """Counts its batches in training."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(64, classes)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.seen = self.seen + 1
        return self.head(x.flatten(1))


def dropping(classes: int, rate: float = 0.5) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Dropout(rate), nn.Linear(64, classes))


class OwnLoss(FedAvg):
    """Clients minimise a loss of the algorithm's own."""

    name: str = "own_loss"

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received, loss=lambda outputs, labels: F.cross_entropy(outputs / 2, labels))
        return trained.send(delta=trained.w - message["w"]), state


class Noisy(FedAvg):
    """Gradients get noise; own: from the task's generator, or else from torch's."""

    name: str = "noisy"
    own: bool = True

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        generator = task.generator("noise") if self.own else None
        noise = torch.randn(len(message["w"]), 1 + int(task.dispatch < 0), generator=generator)  # drawn before training
        trained = task.train(task.received, correction=lambda w: noise[:, 0] + self._drawn(w, generator))
        after = torch.randn((), generator=None)  # drawn after it
        task.log(before=noise.sum(), after=after)
        return trained.send(delta=trained.w - message["w"] + 1e-3 * after), state

    def _drawn(self, w: Tensor, generator: torch.Generator | None) -> Tensor:
        return torch.randn(len(w), generator=generator)


class TrainsTwice(FedAvg):
    """Clients train twice, and overwrite what the first training gave."""

    name: str = "trains_twice"

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        first = task.train(task.received)
        first.w.add_(1e-3)
        second = task.train(first.model, stream=1)
        return second.send(delta=second.w - message["w"]), state
