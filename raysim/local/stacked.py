"""Trains several models at once: their vectors are the rows of one tensor, and `torch.func.vmap` takes each step.

Batches differ in size, so short ones are filled up with samples of weight 0. Trainings differ in their number of steps,
so the longest come first, and a step is taken with the first rows only.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from raysim.local.model import Model
from raysim.local.net import Net
from raysim.local.optimizer import adam_on
from raysim.local.samples import Samples
from raysim.local.settings import Local
from raysim.local.train import Batch, Correction, Trained, batches

CLOSE = 1e-2  # how far, as a part of its norm, a gradient in a trial may be off; GPUs round to 10 bits


class JointTraining(NamedTuple):
    """A training of one model that can be done together with others. The fields are the arguments of `train`."""

    start: Model
    samples: Samples
    settings: Local
    order: np.random.Generator
    part: str | None
    correction: Correction | None

    @property
    def steps(self) -> int:
        """How many mini-batch steps it takes."""
        return self.settings.total_steps(len(self.samples))


class DoneTraining(NamedTuple):
    """A training that is over, and of how many samples gradients were taken for it, repeats counted."""

    trained: Trained
    seen: int


def train_together(net: Net, trainings: Sequence[JointTraining]) -> list[DoneTraining]:
    """Returns what `train` would give for each training, up to rounding. The vectors are views of one tensor.

    Those with the same settings and the same part are done together. Raises RuntimeError if a correction draws from
    global generators, whose draws would then depend on the other trainings.
    """
    groups: dict[tuple[Local, str | None], list[int]] = {}
    for place, training in enumerate(trainings):
        groups.setdefault((training.settings, training.part), []).append(place)
    done: dict[int, DoneTraining] = {}
    before = _drawn(net)
    for places in groups.values():
        places.sort(key=lambda place: -trainings[place].steps)  # the longest first; equal ones stay in order
        group = [trainings[place] for place in places]
        with net.training(group[0].start, 0):
            done |= zip(places, _train(net, group), strict=True)
    if before != _drawn(net):
        raise RuntimeError("task.train: a correction must draw from task.generator where clients are trained together")
    return [done[place] for place in range(len(trainings))]


def _drawn(net: Net) -> tuple[object, ...]:
    """Returns the states of the global generators, which change whenever something is drawn from them."""
    of_torch = torch.cuda.get_rng_state() if net.device.type == "cuda" else torch.get_rng_state()
    _, words, place, *_ = np.random.get_state()
    return of_torch.numpy().tobytes(), np.asarray(words).tobytes(), place, random.getstate()


def _train(net: Net, group: Sequence[JointTraining]) -> list[DoneTraining]:
    """Trains models with the same settings and part, the longest trainings first."""
    settings, part = group[0].settings, group[0].part
    whole = torch.stack([training.start.w for training in group])
    w = whole[:, net.part(part).span]
    move = _mover(settings, w)
    streams = [batches(training.samples, settings, training.order) for training in group]
    first = last = whole.new_zeros(len(group))
    steps, seen = [training.steps for training in group], [0] * len(group)
    for step in range(steps[0]):
        rows = sum(number > step for number in steps)
        here = [next(stream) for stream in streams[:rows]]
        filled = _fill(here)
        losses, gradient = gradients(net, whole[:rows], part, *filled)
        if settings.sam:
            norms = gradient.norm(dim=1, keepdim=True)
            before = w[:rows].clone()
            w[:rows].addcdiv_(gradient, norms + 1e-12, value=settings.sam)
            _, gradient = gradients(net, whole[:rows], part, *filled)
            w[:rows] = before
        for row, training in enumerate(group[:rows]):
            if training.correction is not None:
                gradient[row].add_(training.correction(w[row]))
            seen[row] += len(here[row].y) * (2 if settings.sam else 1)
        if settings.weight_decay:
            gradient.add_(w[:rows], alpha=settings.weight_decay)
        move(gradient)
        first = losses if step == 0 else first
        last = torch.cat((losses, last[rows:]))
    return [
        DoneTraining(
            Trained(group[row].start.replace(whole[row]), torch.tensor(steps[row]), first[row], last[row]),
            seen[row],
        )
        for row in range(len(group))
    ]


def gradients(net: Net, w: Tensor, part: str | None, x: Tensor, y: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the loss (k,) of each of k models on its batch, and the gradients of its part, (k, n).

    w: (k, size). x, y: (k, batch, ...). weights: of samples in the loss, (k, batch).
    """
    names = [entry.name for entry in net.layout.entries]
    span = net.part(part).span
    leaf = w[:, span].detach().requires_grad_()
    first, last, _ = span.indices(w.shape[1])
    joined = leaf if part is None else torch.cat((w[:, :first], leaf, w[:, last:]), 1)

    def loss(w: Tensor, x: Tensor, y: Tensor, weights: Tensor) -> Tensor:
        named = dict(zip(names, net.layout.views(w), strict=True))
        outputs = torch.func.functional_call(net.module, named, (x,))
        each = torch.vmap(lambda output, target: net.loss(output[None], target[None]))(outputs, y)
        return torch.where(weights > 0, each, 0.0) @ weights

    with sdpa_kernel(SDPBackend.MATH):  # vmap would do fused attention one by one
        losses = torch.vmap(loss)(joined, x, y, weights)
        (gradient,) = torch.autograd.grad(losses.sum(), leaf, materialize_grads=True)
    return losses.detach(), gradient


def obstacle(net: Net, start: Model, x: Tensor, y: Tensor) -> str | None:
    """Returns why a network cannot be trained together with others; None if it can.

    x, y: at most three samples, on which it is tried: one model gets all of them, another one only the first two.
    """
    if net.layout.buffers:
        return "the model has buffers, such as BatchNorm's statistics, which depend on who is in a batch"
    part = net.part(None)
    if part.bounded:
        return "the model has weights with a bound"
    slow = "There is a performance drop"  # torch's warning that it computes one by one after all
    tried = [Batch(x, y, slice(None)), Batch(x[:2], y[:2], slice(None))]
    try:
        with net.training(start, 0), warnings.catch_warnings():
            warnings.filterwarnings("error", slow)
            _, found = gradients(net, torch.stack([start.w, start.w]), None, *_fill(tried))
            for row, batch in zip(found, tried, strict=True):
                right, views = part.flat(net.layout)
                torch._foreach_copy_(views, list(net.gradients(batch.x, batch.y, part.parameters)[1]))
                if not (row - right).norm() <= CLOSE * right.norm() + CLOSE:
                    return "the model's outputs for a sample depend on other samples of the batch"
            if net.has_counted:
                return "the model changes a buffer in training, such as a count of batches"
    except Exception as error:
        return f"torch.func.vmap cannot do the model: {str(error).strip().splitlines()[0]}"
    return None


def _fill(found: Sequence[Batch]) -> tuple[Tensor, Tensor, Tensor]:
    """Returns batches as x and y (k, longest, ...), and the weights (k, longest) of samples in the mean of each.

    A short batch is filled up with its first sample, whose outputs are as finite as they were.
    """
    sizes = [len(batch.y) for batch in found]
    longest = max(sizes)

    def stack(tensors: list[Tensor]) -> Tensor:
        return torch.stack([torch.cat((t, t[:1].expand(longest - len(t), *t.shape[1:]))) for t in tensors])

    weights = torch.tensor([[1 / size] * size + [0.0] * (longest - size) for size in sizes])
    x, y = stack([batch.x for batch in found]), stack([batch.y for batch in found])
    return x, y, weights.to(x.device)


def _mover(settings: Local, w: Tensor) -> Callable[[Tensor], None]:
    """Returns a function that takes gradients (k, n) of the first k rows of w, and changes these in place by a step."""
    if settings.optimizer == "adam":
        return adam_on(w, settings.lr, settings.betas, settings.eps)
    buffer = torch.zeros_like(w)

    def move(gradient: Tensor) -> None:
        rows = len(gradient)
        w[:rows].sub_(buffer[:rows].mul_(settings.momentum).add_(gradient), alpha=settings.lr)

    return move
