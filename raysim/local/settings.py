"""The settings of local training, groups of parameters with their own rate and weight decay, and whether settings fit a
network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from raysim.local.augment import AUGMENTATIONS, Augmentation
from raysim.local.gradients import GRADIENTS, Gradient, PerSample
from raysim.local.optimizers import OPTIMIZERS, SGD, Optimizer
from raysim.models.names import names_of
from raysim.parts.errors import BadValue, nearest
from raysim.parts.lazy import torch
from raysim.parts.own_function import as_function
from raysim.parts.part import Count, Epochs, NonNegative, OneOf, Positive, Samples
from raysim.schedules import Schedulable
from raysim.schedules.schedule import Schedule

if TYPE_CHECKING:
    from torch import Tensor

    from raysim.local.model import Trainable
    from raysim.local.net import Net


NORMS = "norms"


class ParameterGroup(Schedulable):
    """Parameters that are trained otherwise than the rest. Of several groups with a parameter, the last counts."""

    parameters: Annotated[tuple[str, ...], Field(min_length=1, examples=[["norms", "*.bias"]])]
    """Patterns of parameters' names, such as `head.*`; `norms` stands for all parameters of normalisation layers."""
    lr_factor: NonNegative = 1.0
    """Times `lr`, this is their learning rate. 0: they stay as they are."""
    weight_decay: NonNegative | None = None
    """Their weight decay. null: that of all."""


def grouped(
    groups: tuple[ParameterGroup, ...], weight_decay: float, net: Net, part: Trainable
) -> tuple[Tensor | None, Tensor | float]:
    """Returns the factors of the learning rate, (n,), of the entries of the part's vector, or None where all are 1; and
    their weight decay, (n,), or one for all. Raises BadValue if a pattern matches nothing."""
    if not groups:
        return None, weight_decay
    factors, of_factors = part.flat()
    decay, of_decay = part.flat()
    factors.fill_(1.0)
    decay.fill_(weight_decay)
    names, every = [entry.name for entry in net.layout.entries], names_of(net.module)
    for group in groups:
        for pattern in group.parameters:
            matched = {first for first in names if any(fnmatchcase(name, pattern) for name in every[first])}
            found = set(net.norms) if pattern == NORMS else matched
            if not found:
                known = "no normalisation layer" if pattern == NORMS else f"none{nearest(pattern, names)}"
                text = f"must match trained parameters, got {pattern!r} and {known}"
                raise BadValue(text, "groups.parameters")
            for name, factor, decayed in zip(names[part.which], of_factors, of_decay, strict=True):
                if name in found:
                    factor.fill_(group.lr_factor)
                    decayed.fill_(weight_decay if group.weight_decay is None else group.weight_decay)
    return factors, decay


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
        text = "must be float32 or bfloat16, because TF32 needs a GPU of NVIDIA's Ampere generation or later, got tf32"
        raise BadValue(text, "precision")
    if local.precision == "bfloat16" and gpu and not torch.cuda.is_bf16_supported():
        raise BadValue("must be float32, because the GPU lacks bfloat16, got bfloat16", "precision")


_augmentation = partial(as_function, base=Augmentation)


class Local(Schedulable):
    """How a client or peer trains on its own samples."""

    optimizer: Annotated[Optimizer, OneOf(OPTIMIZERS)] = SGD()
    """The optimiser: a name, or a block with its keys."""
    lr: Positive = 0.1
    """Learning rate."""
    weight_decay: NonNegative = 0.0
    """This times the parameters is added to the gradient; with adamw, they shrink by this times `lr`. 0: none."""
    groups: tuple[ParameterGroup, ...] = ()
    """Parameters with another rate or weight decay, by patterns of their names."""
    gradients: tuple[Annotated[Gradient, OneOf(GRADIENTS)], ...] = ()
    """What is done with the gradient of a mini-batch, in this order, before an algorithm's correction (a proximal term,
    a dual, a control variate) is added to it, then weight decay."""
    augment: tuple[Annotated[Augmentation, OneOf(AUGMENTATIONS), BeforeValidator(_augmentation)], ...] = ()
    """Random changes of the samples of each mini-batch, in this order."""
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    """How forward and backward passes of training compute. tf32: matrix products of GPUs round to 10 bits. bfloat16:
    what torch.autocast says is in bfloat16. Parameters, gradients and all that travels stay float32."""
    epochs: Epochs = 1
    """Passes through the samples in one training."""
    steps: Count | None = None
    """Mini-batches in one training, whatever `epochs` says. null: as many as `epochs` makes."""
    batch_size: Samples | None = 32
    """Samples in a mini-batch. null: all samples at once, in order."""
    batches: Literal["shuffled", "poisson"] = "shuffled"
    """How mini-batches are made. shuffled: an epoch cuts all samples, in a new order, into mini-batches. poisson: each
    mini-batch has each sample with probability batch_size / n, of n samples, as the accounting of DP-SGD asks; one
    without any sample is a step, too."""
    drop_last: bool = False
    """Whether to leave out an epoch's last mini-batch if it is smaller, unless it is the only one."""

    @model_validator(mode="before")
    @classmethod
    def _usual_optimizer(cls, given: Any) -> Any:
        """Makes of a block `optimizer` without a name that of sgd."""
        block = given.get("optimizer") if isinstance(given, dict) else None
        if isinstance(block, dict) and block and "name" not in block:
            return {**given, "optimizer": {"name": "sgd", **block}}
        return given

    @model_validator(mode="after")
    def _samples_fit(self) -> Self:
        """Says what does not go with gradients of single samples, or with mini-batches that are drawn."""
        if self.batches == "poisson" and self.drop_last:
            raise ValueError("drop_last must be false with batches: poisson, which have no last one; leave it out")
        names = [gradient.name for gradient in self.gradients]
        if "per_sample" not in names:
            return self
        if names[0] != "per_sample" or (others := {"per_sample", "accumulate", "sam"} & {*names[1:]}):
            got = "other parts before it" if names[0] != "per_sample" else f"{', '.join(sorted(others))} after it"
            raise ValueError(f"gradients must have per_sample first, and nothing else that takes gradients, got {got}")
        if any(one.name == "mixup" for one in self.augment):
            raise ValueError("augment must not have mixup with per_sample, because it mixes samples; leave one out")
        return self

    @property
    def plain(self) -> bool:
        """Whether a step is w <- w - lr * gradient, and nothing else."""
        fresh = type(self.optimizer) is SGD and not self.optimizer.momentum
        return fresh and not (self.weight_decay or self.groups)

    def rate(self, steps: int) -> float:
        """Returns the learning rate of a step. steps: how many the training has taken before."""
        return self.lr.after(steps) if isinstance(self.lr, Schedule) else self.lr

    def beyond_sgd(self) -> Iterator[tuple[str, Any, Any]]:
        """Yields the keys that make the optimiser another than SGD without momentum: each with the value that it would
        need, and the value that it has."""
        if type(self.optimizer) is not SGD:
            yield "optimizer", "sgd", self.optimizer.name
        elif self.optimizer.momentum:
            yield "optimizer.momentum", 0, self.optimizer.momentum

    def beyond_one_rate(self) -> Iterator[tuple[str, Any, Any]]:
        """Yields, like `beyond_sgd`, what makes the learning rate change within a training."""
        if isinstance(self.lr, Schedule) and self.lr.over == "steps":
            yield "lr.over", "rounds, versions or time", "steps"

    def changed(self, settings: dict[str, Any], train: Callable[..., Any]) -> Self:
        """Returns these settings with other values for some keys, which `train` takes beside its own keywords.

        Raises TypeError for an unknown one, and ValueError for a wrong value.
        """
        for name in settings.keys() - Local.model_fields.keys():
            parameters = signature(train).parameters.values()
            own = [parameter.name for parameter in parameters if parameter.kind == Parameter.KEYWORD_ONLY]
            known = [*own, *Local.model_fields]
            raise TypeError(f"task.train: unknown keyword {name!r}{nearest(name, known)}; known are {', '.join(known)}")
        if "epochs" in settings:
            settings = {"steps": None, **settings}  # or else the scenario's `steps` would count
        try:
            return self.model_validate({**dict(self), **settings})
        except ValidationError as error:
            from raysim.scenario.explain import explain  # not at the top, for scenarios import this package

            raise BadValue("\n".join(f"task.train: {one}" for one in explain(error, Local, settings))) from None

    def for_epochs(self, epochs: int) -> Self:
        """Returns these settings with another number of epochs, and without `steps`."""
        return self.model_copy(update={"epochs": epochs, "steps": None})

    def epoch_steps(self, samples: int) -> int:
        """Returns how many mini-batches an epoch has."""
        size = min(self.batch_size or samples, samples)
        return max(samples // size, 1) if self.drop_last else -(-samples // size)

    def smallest_batch(self, samples: int) -> int:
        """Returns how many samples the smallest mini-batch of a training has."""
        size = min(self.batch_size or samples, samples)
        if self.batches == "poisson" and size < samples:
            return 1
        rest = 0 if self.drop_last or self.total_steps(samples) < self.epoch_steps(samples) else samples % size
        return rest or size

    def total_steps(self, samples: int) -> int:
        """Returns how many mini-batches one training has."""
        return self.steps if self.steps is not None else self.epochs * self.epoch_steps(samples)

    def total_samples(self, samples: int) -> int:
        """Returns how many samples pass through the network in one training, with repeats and second passes; in the
        mean, where mini-batches are drawn."""
        passes = math.prod(gradient.passes for gradient in self.gradients)
        if self.batch_size is None or self.batch_size >= samples:
            return passes * self.total_steps(samples) * samples
        if self.batches == "poisson":
            return passes * self.total_steps(samples) * self.batch_size
        rest = 0 if self.drop_last else samples % self.batch_size
        epochs, steps = divmod(self.total_steps(samples), self.epoch_steps(samples))
        return passes * (epochs * (samples - samples % self.batch_size + rest) + steps * self.batch_size)
