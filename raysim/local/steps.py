"""The steps of one training: an optimiser at work on the flat vector, and whether settings fit a network."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from raysim.local.gradients import PerSample
from raysim.local.net import Net
from raysim.local.optimizers import Optimizer
from raysim.local.settings import Local, grouped
from raysim.local.trainable import Trainable
from raysim.parts.errors import BadValue
from raysim.terms import Record

TAKEN = "steps taken"  # the entry of a kept state that counts steps; the others are those of `Optimizer.init`


def decayed(vector: Tensor, w: Tensor, decay: Tensor | float) -> Tensor:
    """Adds weight decay to a gradient, (n,), in place. decay: one for all, or (n,)."""
    if isinstance(decay, Tensor):
        return vector.addcmul_(w, decay)
    return vector.add_(w, alpha=decay) if decay else vector


class Steps:
    """Takes the steps of a training.

    kept: the state of an optimiser that continues, as `first_kept` makes it, which is changed in place; None: it starts
    afresh.
    """

    def __init__(self, settings: Local, net: Net, part: Trainable, kept: Record | None = None) -> None:
        self._settings, self._part, self._optimizer = settings, part, settings.optimizer
        self._factors, self.decay = grouped(settings.groups, settings.weight_decay, net, part)
        self._taken, self._kept = 0, None
        if settings.plain:
            return
        self._vector, self._views = part.flat()
        self._state = self._optimizer.init(part.w)
        if kept:
            self._kept = kept
            self._state = {name: kept[name][part.span] for name in self._state}
            self._taken = int(kept[TAKEN][part.span][:1])

    def __call__(self, gradients: Sequence[Tensor], extra: Tensor | None, lr: float) -> None:
        """Takes a step. gradients: of each parameter. extra: a vector (n,) that is added to them, or None."""
        w = self._part.w
        if self._settings.plain:  # saves joining the gradients, a tenth of a small network's step
            if extra is not None:  # before w changes, for `extra` may be w itself
                w.add_(extra, alpha=-lr)
            torch._foreach_add_(self._part.views, list(gradients), alpha=-lr)
            return
        torch._foreach_copy_(self._views, list(gradients))
        gradient = self._vector if extra is None else self._vector.add_(extra)
        before = None if self._factors is None else w.clone()
        if not self._optimizer.decoupled:
            decayed(gradient, w, self.decay)
        elif isinstance(self.decay, Tensor):
            w.addcmul_(w, self.decay, value=-lr)
        elif self.decay:
            w.mul_(1 - lr * self.decay)
        self._optimizer.move(w, gradient, self._state, lr, self._taken)
        if before is not None and self._factors is not None:  # a step grows in proportion to its rate
            w.copy_(before.lerp_(w, self._factors))
        self._taken += 1

    def keep(self) -> None:
        """Leaves in the kept state how many steps it has seen by now."""
        if self._kept is not None:
            self._kept[TAKEN][self._part.span] = self._taken


def first_kept(optimizer: Optimizer, w: Tensor) -> Record:
    """Returns what an optimiser with `keep` keeps for each client or peer before its first training; {} without it."""
    if not optimizer.keep or not (state := optimizer.init(w)):
        return {}
    # A part alone may be trained, so each entry of the vector has a count.
    return {**state, TAKEN: w.new_zeros(w.shape)}


def fits(local: Local, net: Net, places: tuple[int, ...] = ()) -> None:
    """Raises BadValue if a group matches nothing, samples cannot be augmented, or the device lacks a precision.

    places: the axes of the labels of one sample, such as (height, width); () where it has one, or targets.
    """
    grouped(local.groups, 0.0, net, net.part(None))
    if net.pixels is None and (images := [one.name for one in local.augment if one.images]):
        text = f"works on images only for {', '.join(images)}, and the data have none; leave it out, or name a function"
        raise BadValue(text, "augment")
    pixels = len(places) == 2
    if places and (wrong := [one.name for one in local.augment if one.images and not (pixels and one.with_places)]):
        text = f"{', '.join(wrong)} changes images, and these data have a label for each of {places} places, which"
        raise BadValue(f"{text} it does not change alike; leave it out, or take crop or flip", "augment")
    if net.normalises_batches and any(isinstance(one, PerSample) for one in local.gradients):
        text = "must not have per_sample where BatchNorm mixes the samples of a mini-batch; set model.norm: frozen, or "
        raise BadValue(f"{text}take a model with GroupNorm", "gradients")
    gpu = net.device.type == "cuda"
    # The server's worker checks, too, and may be on a CPU; the scenario's own check wants a GPU for the clients.
    if local.precision == "tf32" and gpu and torch.cuda.get_device_capability(net.device) < (8, 0):
        text = "must be float32 or bfloat16, for TF32 needs a GPU of NVIDIA's Ampere generation or later, got tf32"
        raise BadValue(text, "precision")
    if local.precision == "bfloat16" and gpu and not torch.cuda.is_bf16_supported():
        raise BadValue("must be float32, because the GPU lacks bfloat16, got bfloat16", "precision")
