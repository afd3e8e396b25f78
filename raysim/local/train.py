"""Local training: mini-batch steps on the flat vector."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from raysim.algorithms import Record
from raysim.local.model import Model
from raysim.local.net import Net
from raysim.local.optimizer import OPTIMIZERS
from raysim.local.settings import Local

Correction = Callable[[Tensor], Tensor]  # of the flat vector (or part) that is trained: added to its gradient


class Trained(NamedTuple):
    """What training gives."""

    model: Model
    steps: Tensor  # 0-d: mini-batches taken
    loss_before: Tensor  # 0-d: of the first mini-batch, at the start
    loss_after: Tensor  # 0-d: of the last mini-batch, before its step

    @property
    def w(self) -> Tensor:
        return self.model.w

    def send(self, **vectors: Tensor) -> Record:
        """An update of these vectors, with what the engine takes out again: buffers and what the tables show."""
        return {
            **vectors,
            "buffers": self.model.buffers,
            "steps": self.steps,
            "loss_before": self.loss_before,
            "loss_after": self.loss_after,
        }


def batches(x: Tensor, y: Tensor, settings: Local, order: np.random.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """The mini-batches of all epochs. One shuffle an epoch: its batches are slices."""
    samples = len(y)
    total, an_epoch = settings.total_steps(samples), settings.batches(samples)
    size = settings.batch_size or samples
    for step in range(total):
        place = step % an_epoch
        if place == 0 and size < samples:
            shuffled = torch.from_numpy(order.permutation(samples)).to(x.device)
            epoch_x, epoch_y = x[shuffled], y[shuffled]
        elif place == 0:
            epoch_x, epoch_y = x, y  # one batch of everything: its order is of no matter
        yield epoch_x[place * size : (place + 1) * size], epoch_y[place * size : (place + 1) * size]


def train(
    net: Net,
    start: Model,
    x: Tensor,
    y: Tensor,
    settings: Local,
    order: np.random.Generator,
    *,
    part: str | None = None,
    correction: Correction | None = None,
) -> Trained:
    """Trains from `start` on the samples x (n, ...), y (n,).

    part: train only the "shared" or the "personal" part. correction: added to the gradient, as a proximal term, a dual
    or a control variate; it gets and gives the part that is trained.
    """
    trained = net.part(part)
    step = OPTIMIZERS[settings.optimizer](settings, net, trained)
    first = last = None
    taken = 0
    with net.training(start):
        for batch_x, batch_y in batches(x, y, settings, order):
            extra = None if correction is None else correction(trained.w)
            last, gradients = net.gradients(batch_x, batch_y, trained.parameters)
            first = last if first is None else first
            step(gradients, extra)
            taken += 1
    if first is None or last is None:
        raise ValueError(f"training needs at least one sample, got {len(y)}")
    return Trained(net.model(), torch.tensor(taken), first, last)
