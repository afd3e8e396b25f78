"""What training computes, bit by bit: written out in torch's own operations, for every optimiser and path."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from local_tasks import CPU, make_task, mlp
from torch import Tensor

from raysim.local import Local
from raysim.local.gradients import SAM
from raysim.local.loop import batches
from raysim.local.net import Net
from raysim.local.optimizers import SGD, Adam
from raysim.local.samples import Samples
from raysim.local.task import Task
from raysim.models import CNN
from raysim.models.build import initialise
from raysim.parts.rng import generator

RULES: list[dict[str, Any]] = [
    {},
    {"optimizer": SGD(momentum=0.9)},
    {"weight_decay": 0.01},
    {"optimizer": SGD(momentum=0.5), "weight_decay": 0.01},
    {"optimizer": "adam", "lr": 0.01},
    {"optimizer": Adam(betas=(0.8, 0.95), eps=1e-4), "lr": 0.01, "weight_decay": 0.1},
]


def cnn() -> Net:
    return Net(initialise(CNN(channels=(4,), kernel=3, hidden=8), (1, 8, 8), 10, 0), (), "cross_entropy", CPU)


def pull(w: Tensor) -> Tensor:
    return 0.1 * (w - 0.5)


class Written:
    """The steps of `local`, on a vector of its own."""

    def __init__(self, local: Any, w: Tensor, pieces: Sequence[Tensor]) -> None:
        self.local, self.w, self.pieces = local, w, pieces
        self.first, self.second, self.taken = torch.zeros_like(w), torch.zeros_like(w), 0

    def step(self, gradients: Sequence[Tensor], joined: Tensor, extra: Tensor | None) -> None:
        rule = self.local
        self.taken += 1
        sgd = isinstance(rule.optimizer, SGD)
        momentum = rule.optimizer.momentum if sgd else 0
        if sgd and not momentum and not rule.weight_decay:
            if extra is not None:
                self.w.add_(extra, alpha=-rule.lr)
            for piece, gradient in zip(self.pieces, gradients, strict=True):
                piece.add_(gradient, alpha=-rule.lr)
            return
        g = joined if extra is None else joined + extra
        g = g.add(self.w, alpha=rule.weight_decay) if rule.weight_decay else g
        if sgd:
            self.first = g if self.taken == 1 else self.first * momentum + g
            self.w.add_(self.first if momentum else g, alpha=-rule.lr)
            return
        beta, gamma = rule.optimizer.betas
        self.first.lerp_(g, 1 - beta)
        self.second.mul_(gamma).addcmul_(g, g, value=1 - gamma)
        root = self.second.sqrt() / (1 - gamma**self.taken) ** 0.5 + rule.optimizer.eps
        self.w.addcdiv_(self.first, root, value=-rule.lr / (1 - beta**self.taken))


def written(net: Net, task: Task, local: Any, correction: Any, radius: float) -> Tensor:
    """Trains by the formulas. Gradients are those of the net, whose vector the formulas change."""
    order = generator(0, "train 0", 1, 2)
    order.integers(2**63)  # the seed of dropout
    net.load(task.received)
    net.mode(training=True)
    part = net.part(None)
    joined, views = part.flat()
    rule = Written(local, net.w, part.views)
    for x, y in batches(Samples.of(task.x, task.y), local, order):
        extra = None if correction is None else correction(net.w)
        _, gradients = net.gradients(x, y, part.parameters)
        if radius:
            before = net.w.clone()
            norm = torch.stack([g.norm() for g in gradients]).norm()
            for view, g in zip(part.views, gradients, strict=True):
                view.add_(g * (radius / (norm + 1e-12)))
            _, gradients = net.gradients(x, y, part.parameters)
            net.w.copy_(before)
        for view, g in zip(views, gradients, strict=True):
            view.copy_(g)
        rule.step(gradients, joined.clone(), extra)
    return net.w.clone()


@pytest.mark.parametrize("make", [mlp, cnn])
@pytest.mark.parametrize("radius", [0.0, 0.05])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_training_has_the_bits_of_its_formulas(make: Any, radius: float, rule: dict[str, Any]) -> None:
    """Plain SGD of a multilayer perceptron takes the path without gradients, unless all samples are in a batch. Adam
    rounds as torch's fused kernel does, which `test_optimizers` has to the bit."""
    net = make()
    for correction in (None, pull):
        for batch_size in (16, None):
            local = Local(**rule, gradients=(SAM(radius=radius),) if radius else (), epochs=2, batch_size=batch_size)
            task = make_task(net, local=local)
            found = task.train(task.received, correction=correction)
            expected = written(net, task, local, correction, radius)
            fused = make is mlp and local.plain and not radius and batch_size is not None
            fused |= isinstance(local.optimizer, Adam)
            assert torch.equal(found.w, expected) or (fused and torch.allclose(found.w, expected, atol=1e-6))
            checked = task.train(task.received, correction=correction, tolerance=0.0)
            assert checked.w.equal(found.w)
