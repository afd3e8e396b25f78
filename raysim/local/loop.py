"""Local training: batches, and steps on the flat vector until they are over, or a tolerance is met."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from raysim.local.gradients import GradientPoint
from raysim.local.graphs import captured_steps
from raysim.local.model import Model, Trainable
from raysim.local.net import Net
from raysim.local.outputs import LossFunction
from raysim.local.samples import Augmenter, Samples
from raysim.local.settings import Local
from raysim.local.steps import AddedGradient, Correction, Plain, Steps, Taken, decayed, gradient_of
from raysim.parts.errors import BadValue
from raysim.terms import Record

LOADED = 8192  # samples to load at once; fixed, because results depend on it bit by bit


class Goal(NamedTuple):
    """What a training follows, and when it stops: the keyword arguments of `Task.train`."""

    part: str | None = None
    correction: Correction | None = None
    tolerance: float | Tensor | None = None
    relative: bool = False
    loss: LossFunction | None = None
    gradient: Plain | None = None


class Trained(NamedTuple):
    """The result of training."""

    model: Model
    steps: Tensor  # 0-d; how many mini-batch steps were taken
    loss_before: Tensor | None  # 0-d; loss of the first mini-batch, at the start; None if none has samples
    loss_after: Tensor | None  # 0-d; that of the last one before its step, or of all samples if a tolerance was met
    residual: Tensor | None = None  # 0-d; norm of the gradient when last measured; None without a tolerance
    tolerance: Tensor | None = None  # 0-d; what the residual was compared with; None without a tolerance
    logged: dict[str, float | None] | None = None  # what the task logs, to which `send` adds; None: nobody asks for it

    @property
    def w(self) -> Tensor:
        """The trained parameters, (size,)."""
        return self.model.w

    def log(self) -> None:
        """Logs losses, residual and tolerance, for the task's row of the table `updates`."""
        if self.logged is not None:
            shown = {name: getattr(self, name) for name in ("loss_before", "loss_after", "residual", "tolerance")}
            self.logged.update({name: float(value) for name, value in shown.items() if value is not None})

    def send(self, **vectors: Tensor) -> Record:
        """Returns an update: these vectors, and the buffers that travel, which the engine averages. Logs as `log`
        does."""
        self.log()
        return {**vectors, "buffers": self.model.shared_buffers}


def batches(samples: Samples, settings: Local, order: np.random.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields the mini-batches of all epochs. Each epoch is shuffled, and loaded a few mini-batches at a time; or each
    mini-batch is drawn."""
    total, an_epoch = settings.total_steps(len(samples)), settings.epoch_steps(len(samples))
    size = settings.batch_size or len(samples)
    at_a_time = max(LOADED // size, 1)  # mini-batches to load at once
    for step in range(total):
        if size >= len(samples):
            yield samples.all  # the order within a batch of all samples does not matter
            continue
        if settings.batches == "poisson":
            places = np.flatnonzero(order.random(len(samples)) < size / len(samples))
            yield samples.take(places, again=total > an_epoch)
            continue
        place = step % an_epoch
        if place == 0:
            shuffled = order.permutation(len(samples))  # of all, so that few steps see the batches of many
        if place % at_a_time == 0:
            first, last = place, min(place + at_a_time, an_epoch, place + total - step)
            places = shuffled[first * size : last * size]
            x, y = samples.take(places, again=total > an_epoch)
        here = slice((place - first) * size, (place - first + 1) * size)
        yield x[here], y[here]


class Criterion:
    """Stops training once the norm of the gradient that it follows is at most a tolerance."""

    def __init__(self, part: Trainable, settings: Local, decay: Tensor | float, goal: Goal) -> None:
        self._part, self._relative = part, goal.relative
        self._decay = 0.0 if settings.optimizer.decoupled else decay
        self.tolerance = torch.as_tensor(goal.tolerance, dtype=torch.float32, device=part.w.device)
        self.residual: Tensor | None = None  # the norm when last measured

    def met(self, gradients: Sequence[Tensor], added: Tensor | None) -> bool:
        """Whether to stop now.

        gradients: the gradient of the mean loss over all samples, for each parameter. added: what is added to it, (n,),
        or None.
        """
        followed = decayed(self._part.joined(gradients), self._part.w, self._decay)
        residual = (followed if added is None else followed.add_(added)).norm()
        if self.residual is None and self._relative:
            self.tolerance = self.tolerance * residual
        self.residual = residual
        return bool(residual <= self.tolerance)


def train(
    net: Net,
    start: Model,
    samples: Samples,
    settings: Local,
    order: np.random.Generator,
    goal: Goal,
    draws: Callable[[str], torch.Generator],
    kept: Record | None,
) -> Trained:
    """Trains a model from `start` on samples.

    order: shuffles the samples. draws: gives the training's generator for a purpose, one and the same each time. kept:
    the kept state of an optimiser, which is changed in place; None: it starts afresh. Raises ValueError if there are no
    samples.
    """
    if not (number := len(samples)):
        raise BadValue(f"training needs at least one sample, got {number}")
    part = net.part(goal.part)
    added = AddedGradient(goal.correction, part)
    own = bool(goal.loss or goal.gradient or added.by_gradient)
    plain, take = _gradients(net, part, settings, number, goal, partial(draws, "gradients"))
    captured = net.captured is not None
    steps = captured_steps(net, goal.part, settings, own) if captured else Steps(settings, net, part, take)
    steps.begin(settings, settings.total_steps(number), kept)
    augment = Augmenter(settings.augment, net.pixels, net.classes, partial(draws, "augment"))
    criterion = None if goal.tolerance is None else Criterion(part, settings, steps.decay, goal)
    whole = settings.batch_size is None or settings.batch_size >= number
    fast = _may_be_fast(settings) and not (own or goal.part or whole or captured)
    first = last = None
    taken = 0
    with net.training(start, settings.precision):
        for x, y in batches(samples, settings, order):
            extra, ready, numbers = added.ahead(), None, steps.numbers[taken]
            if criterion is not None and taken % settings.epoch_steps(number) == 0:
                net.mode(training=whole)
                last, gradients = plain(*samples.all)
                net.mode(training=True)
                if criterion.met(gradients, added.to(gradients, extra)):
                    break
                ready = (last, gradients) if whole and not settings.augment else None  # it has just been taken
            if settings.augment and len(y):
                x, y = augment(x, y)
            value = net.descend(x, y, numbers[0], extra) if fast else None
            if value is None:
                value = steps(x, y, extra, numbers, ready, added)
            last = value if len(y) else last
            first = last if first is None else first
            taken += 1
    if kept is not None:
        steps.keep(kept, taken)
    net.steps += taken
    measured = (criterion.residual, criterion.tolerance) if criterion else ()
    return Trained(net.model(), torch.tensor(taken), last if first is None else first, last, *measured)


def _gradients(
    net: Net,
    part: Trainable,
    settings: Local,
    samples: int,
    goal: Goal,
    generator: Callable[[], torch.Generator],
) -> tuple[Plain, Taken]:
    """Returns what takes the gradient of a batch: before `local.gradients` change it, and as they say."""
    usual, own = partial(net.gradients, parameters=part.parameters, loss=goal.loss), goal.gradient
    plain = usual if own is None else lambda x, y: own(x, y) if len(y) else usual(x, y)
    each = partial(net.gradient_of_each, parameters=part.parameters, loss=goal.loss)
    expected = min(settings.batch_size or samples, samples) if settings.batches == "poisson" else None
    point = GradientPoint(part.w, part.pieces, generator, each, expected)
    return plain, gradient_of(settings.gradients, part, plain, point)


def _may_be_fast(settings: Local) -> bool:
    """Whether steps may be those of plain SGD that store no gradient, which round otherwise.

    They are not taken with batches of all samples: a criterion takes the gradient of these, and a training without one
    must round as one with it does.
    """
    return settings.plain and not settings.gradients and settings.batches != "poisson"
