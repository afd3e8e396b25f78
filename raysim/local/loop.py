"""Local training: batches, and steps on the flat vector until they are over, or a tolerance is met."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from raysim.local.batch_gradient import BatchGradient, Plain, Taken, gradient_of
from raysim.local.graphs import Recipe
from raysim.local.model import Model
from raysim.local.net import Net
from raysim.local.outputs import LossFunction
from raysim.local.samples import Augmenter, Samples
from raysim.local.settings import Local
from raysim.local.steps import Steps, decayed
from raysim.local.trainable import AddedGradient, Correction
from raysim.parts.errors import BadValue
from raysim.terms import Record

LOADED = 8192  # samples to load at once; fixed, because results depend on it bit by bit


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


class Batch(NamedTuple):
    """A mini-batch: x and y are (n, ...)."""

    x: Tensor
    y: Tensor


def batches(samples: Samples, settings: Local, order: np.random.Generator) -> Iterator[Batch]:
    """Yields the mini-batches of all epochs. Each epoch is shuffled, and loaded a few mini-batches at a time; or each
    mini-batch is drawn."""
    total, an_epoch = settings.total_steps(len(samples)), settings.epoch_steps(len(samples))
    size = settings.batch_size or len(samples)
    at_a_time = max(LOADED // size, 1)  # mini-batches to load at once
    for step in range(total):
        if size >= len(samples):
            yield Batch(*samples.all)  # the order within a batch of all samples does not matter
            continue
        if settings.batches == "poisson":
            places = np.flatnonzero(order.random(len(samples)) < size / len(samples))
            yield Batch(*samples.take(places, again=total > an_epoch))
            continue
        place = step % an_epoch
        if place == 0:
            shuffled = order.permutation(len(samples))  # of all, so that few steps see the batches of many
        if place % at_a_time == 0:
            first, last = place, min(place + at_a_time, an_epoch, place + total - step)
            places = shuffled[first * size : last * size]
            x, y = samples.take(places, again=total > an_epoch)
        here = slice((place - first) * size, (place - first + 1) * size)
        yield Batch(x[here], y[here])


class Step:
    """A mini-batch step: the gradient, the correction, and a move by the optimiser.

    It has a fast path for plain SGD on a multilayer perceptron, and on a GPU its kernels may be recorded. fast: whether
    it may take the fast path, which stores no gradient, and so rounds otherwise.
    """

    def __init__(
        self,
        net: Net,
        settings: Local,
        samples: int,
        part: str | None,
        correction: Correction | None,
        loss: LossFunction | None,
        gradient: Plain | None,
        generator: Callable[[], torch.Generator],
    ) -> None:
        self._net, self._settings, self._loss, self._gradient = net, settings, loss, gradient
        self.trained = trained = net.part(part)
        self.added = AddedGradient(correction, trained)
        own = bool(loss or gradient or self.added.by_gradient)
        self._recipe: Recipe | None = net.graphs and net.graphs.recipe(part, settings, own)
        self.steps: Steps
        self._take: Taken
        if self._recipe:
            self.steps, self._take = self._recipe.steps, self._recipe.take
        else:
            self.steps = Steps(settings, net, trained)
            each = partial(net.gradient_of_each, parameters=trained.parameters, loss=loss)
            expected = min(settings.batch_size or samples, samples) if settings.batches == "poisson" else None
            self._take = gradient_of(settings.gradients, trained, self.plain, each, generator, expected)
        self.fast = settings.plain and not (self._recipe or own or part or settings.gradients)
        self.fast = self.fast and settings.batches != "poisson"

    def plain(self, x: Tensor, y: Tensor) -> BatchGradient:
        """Returns the loss and gradient of a batch, before `local.gradients` change it."""
        if self._gradient is None or not len(y):
            return self._net.gradients(x, y, self.trained.parameters, self._loss)
        return self._gradient(x, y)

    def __call__(self, taken: int, x: Tensor, y: Tensor, extra: Tensor | None, ready: BatchGradient | None) -> Tensor:
        """Takes a step, and returns the batch's loss before it, 0-d.

        taken: how many steps the training has taken before. extra: what the correction adds, if it is known before the
        gradient is. ready: the plain gradient, if it has been taken already.
        """
        if self.fast and (loss := self._net.descend(x, y, self._settings.rate(taken), extra)) is not None:
            return loss
        if self._recipe and ready is None:
            return self._recipe(taken, x, y, extra)
        loss, gradients = self._take(x, y, ready)
        self.steps(gradients, self.added.to(gradients, extra), self.steps.numbers(taken))
        self.trained.project()
        return loss


class Criterion:
    """Stops training once the norm of the gradient that it follows is at most a tolerance.

    relative: whether the tolerance is a fraction of the norm when first measured.
    """

    def __init__(self, step: Step, settings: Local, tolerance: float | Tensor, relative: bool) -> None:
        self._part, self._relative = step.trained, relative
        self._decay = 0.0 if settings.optimizer.decoupled else step.steps.decay
        self.tolerance = torch.as_tensor(tolerance, dtype=torch.float32, device=self._part.w.device)
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
    *,
    part: str | None = None,
    correction: Correction | None = None,
    tolerance: float | Tensor | None = None,
    relative: bool = False,
    loss: LossFunction | None = None,
    gradient: Plain | None = None,
    draws: Callable[[str], torch.Generator] = lambda purpose: torch.Generator(),
    kept: Record | None = None,
) -> Trained:
    """Trains a model from `start` on samples. The keyword arguments are those of `Task.train`.

    order: shuffles the samples. draws: gives the training's generator for a purpose, one and the same each time. kept:
    the kept state of an optimiser, which is changed in place; None: it starts afresh.

    Raises ValueError if there are no samples.
    """
    if not len(samples):
        raise BadValue(f"training needs at least one sample, got {len(samples)}")
    step = Step(net, settings, len(samples), part, correction, loss, gradient, partial(draws, "gradients"))
    augment = Augmenter(settings.augment, net.pixels, net.classes, partial(draws, "augment"))
    criterion = None if tolerance is None else Criterion(step, settings, tolerance, relative)
    whole = settings.batch_size is None or settings.batch_size >= len(samples)
    step.fast = step.fast and not whole  # a criterion takes gradients of all samples; without one, they round alike
    step.steps.begin(settings, settings.total_steps(len(samples)), kept)
    first = last = None
    taken = 0
    with net.training(start, settings.precision):
        for x, y in batches(samples, settings, order):
            extra, ready = step.added.ahead(), None
            if criterion is not None and taken % settings.epoch_steps(len(samples)) == 0:
                net.mode(training=whole)
                last, gradients = step.plain(*samples.all)
                net.mode(training=True)
                if criterion.met(gradients, step.added.to(gradients, extra)):
                    break
                ready = (last, gradients) if whole and not settings.augment else None  # it has just been taken
            if settings.augment and len(y):
                x, y = augment(x, y)
            value = step(taken, x, y, extra, ready)
            last = value if len(y) else last
            first = last if first is None else first
            taken += 1
    if kept is not None:
        step.steps.keep(kept, taken)
    net.steps += taken
    measured = (criterion.residual, criterion.tolerance) if criterion else ()
    return Trained(net.model(), torch.tensor(taken), last if first is None else first, last, *measured)
