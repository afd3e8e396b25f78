"""Local training: mini-batch steps on the flat vector. Each takes a batch, its gradient, a correction, and a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from raysim.local.gradients import Each, GradientPoint
from raysim.local.model import Model
from raysim.local.net import Net
from raysim.local.outputs import LossFunction
from raysim.local.samples import Augmenter, Samples
from raysim.local.settings import Local
from raysim.local.steps import Steps, decayed
from raysim.local.trainable import AddedGradient, Correction, Trainable
from raysim.parts.errors import BadValue
from raysim.terms import Record

LOADED = 8192  # samples to load at once; fixed, because results depend on it bit by bit
BatchGradient = tuple[Tensor, Sequence[Tensor]]  # a batch's loss, 0-d, and the gradient of each parameter
Plain = Callable[[Tensor, Tensor], BatchGradient]  # from the inputs and targets of a batch


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


def gradient_of(
    settings: Local,
    samples: int,
    part: Trainable,
    plain: Plain,
    each: Each,
    generator: Callable[[], torch.Generator],
) -> Callable[[Tensor, Tensor, BatchGradient | None], BatchGradient]:
    """Returns a function that takes the gradient of a batch as `local.gradients` say.

    It gets the batch and, if that is taken already, its plain gradient. samples: how many are trained on. plain, each:
    take the gradient of a batch, and those of its samples.
    """
    if not (parts := settings.gradients):
        return lambda x, y, ready: ready or plain(x, y)
    vector, views = part.flat()
    waiting: list[tuple[Tensor, BatchGradient]] = []  # the plain gradient of a batch that is taken already

    def take(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        is_ready = waiting and waiting[0][0] is x  # a part may ask for that of a piece of the batch
        value, pieces = waiting.pop()[1] if is_ready else plain(x, y)
        torch._foreach_copy_(views, list(pieces))
        return value, vector

    expected = min(settings.batch_size or samples, samples) if settings.batches == "poisson" else None
    point = GradientPoint(part.w, part.pieces, generator, each, expected)
    for one in parts:
        take = partial(one.take, take, point)

    def taken(x: Tensor, y: Tensor, ready: BatchGradient | None) -> BatchGradient:
        waiting[:] = [] if ready is None else [(x, ready)]
        value, gradient = take(x, y)
        return value, point.pieces(gradient)

    return taken


class Criterion:
    """Stops training once the norm of the gradient that it follows is at most a tolerance.

    relative: whether the tolerance is a fraction of the norm when first measured.
    """

    def __init__(self, part: Trainable, decay: Tensor | float, tolerance: float | Tensor, relative: bool) -> None:
        self.tolerance = torch.as_tensor(tolerance, dtype=torch.float32, device=part.w.device)
        self.residual: Tensor | None = None  # the norm when last measured
        self._relative = relative
        self._part, self._decay = part, decay

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


def _may_be_fast(settings: Local) -> bool:
    """Whether steps may be those of plain SGD that store no gradient, which round otherwise.

    They are not taken with batches of all samples: a criterion takes the gradient of these, and a training without one
    must round as one with it does.
    """
    return settings.plain and not settings.gradients and settings.batches != "poisson"


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
    trained = net.part(part)
    step, added = Steps(settings, net, trained, kept), AddedGradient(correction, trained)

    def plain(x: Tensor, y: Tensor) -> BatchGradient:
        if gradient is None or not len(y):
            return net.gradients(x, y, trained.parameters, loss)
        return gradient(x, y)

    each = partial(net.gradient_of_each, parameters=trained.parameters, loss=loss)
    take = gradient_of(settings, len(samples), trained, plain, each, partial(draws, "gradients"))
    augment = Augmenter(settings.augment, net.pixels, net.classes, partial(draws, "augment"))
    decay = 0.0 if settings.optimizer.decoupled else step.decay
    criterion = None if tolerance is None else Criterion(trained, decay, tolerance, relative)
    whole = settings.batch_size is None or settings.batch_size >= len(samples)
    fast = not (added.by_gradient or part or loss or gradient or whole) and _may_be_fast(settings)
    first = last = None
    taken = 0
    with net.training(start, settings.precision):
        for x, y in batches(samples, settings, order):
            ready, lr = None, settings.rate(taken)
            extra = None if added.by_gradient else added()
            if criterion is not None and taken % settings.epoch_steps(len(samples)) == 0:
                net.mode(training=whole)
                last, gradients = plain(*samples.all)
                net.mode(training=True)
                if criterion.met(gradients, added(gradients) if added.by_gradient else extra):
                    break
                ready = (last, gradients) if whole and not settings.augment else None  # it has just been taken
            if settings.augment and len(y):
                x, y = augment(x, y)
            if fast and (descended := net.descend(x, y, lr, extra)) is not None:
                last = descended
            else:
                value, gradients = take(x, y, ready)
                last = value if len(y) else last
                step(gradients, added(gradients) if added.by_gradient else extra, lr)
                trained.project()
            first = last if first is None else first
            taken += 1
    step.keep()
    net.steps += taken
    measured = (criterion.residual, criterion.tolerance) if criterion else ()
    return Trained(net.model(), torch.tensor(taken), last if first is None else first, last, *measured)
