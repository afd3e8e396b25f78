"""The one module that a worker has, with which all its clients train in turn."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from raysim.local.model import Model
from raysim.models.equilibrium import Equilibrium, Solves
from raysim.models.layout import Layout
from raysim.models.projection import BoundedLinear


def quadratic(output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The quadratic data's module gives losses already."""
    return output.mean() if reduction == "mean" else output.sum()


def squared_error(output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Half the squared error. output: (n, 1) or (n,). target: (n,)."""
    flat = output.reshape(target.shape)  # (n, 1) less (n,) would be (n, n)
    return F.mse_loss(flat, target, reduction=reduction) / 2


def cross_entropy(output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Of logits (n, labels) and labels (n,); of text, logits (n, length, labels), see `predicted`."""
    output = predicted(output, target)
    if output.ndim > 2:
        output, target = output.flatten(0, -2), target.flatten()
    return F.cross_entropy(output, target, reduction=reduction)


def predicted(output: Tensor, target: Tensor) -> Tensor:
    """What labels are of, of logits or features: all or, of text (n, length, ...) with one label a sample, the last."""
    return output[:, -1] if output.ndim == target.ndim + 2 else output


LossFunction = Callable[[Tensor, Tensor], Tensor]  # from outputs and targets to a 0-d loss
LOSSES: dict[str, Callable[..., Tensor]] = {
    "cross_entropy": cross_entropy,
    "squared_error": squared_error,
    "quadratic": quadratic,
}


class Trainable(NamedTuple):
    """The parameters of a module that a training changes."""

    w: Tensor  # (n,), a view of the module's flat vector
    views: list[Tensor]  # the same, each in its parameter's shape
    parameters: list[nn.Parameter]
    span: slice  # of the flat vector
    which: slice  # of all parameters
    bounded: list[BoundedLinear]  # layers whose weights are among them

    def project(self) -> None:
        """Puts weights that must stay within a bound back there, in place: after each step."""
        for layer in self.bounded:
            layer.project()

    def flat(self, layout: Layout) -> tuple[Tensor, list[Tensor]]:
        """Zeros like `w`, and its views."""
        whole = torch.zeros(layout.size, device=self.w.device)
        return whole[self.span], layout.views(whole)[self.which]


class Net:
    """A module whose parameters are views of one flat vector `w`: a change of `w` in place is one of the module."""

    def __init__(self, module: nn.Module, personal: tuple[str, ...], loss: str, device: torch.device) -> None:
        self.module = module.to(device)
        self.layout = Layout(self.module, personal)
        self.w = self.layout.flatten(self.module)
        self.layout.bind(self.module, self.w)
        self.loss = LOSSES[loss]
        self.device = device
        self._personal = personal
        self.parameters = self.layout.select(self.module)
        frozen = (parameter for parameter in self.module.parameters() if not parameter.requires_grad)
        self.frozen_bytes = sum(parameter.numel() * parameter.element_size() for parameter in frozen)
        self._norms = [m for m in self.module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        self._equilibria = [m for m in self.module.modules() if isinstance(m, Equilibrium)]
        self._busy = False
        self.seen = 0  # samples that gradients were taken of
        self.steps = 0  # of optimisers
        self.passes = 0.0  # of samples: a forward pass is one, and a backward pass two
        cut = self.layout.cut
        first = sum(entry.offset < cut for entry in self.layout.entries)
        self._parts = {
            None: self._make_part(slice(None), slice(None)),
            "shared": self._make_part(slice(cut), slice(first)),
            "personal": self._make_part(slice(cut, None), slice(first, None)),
        }

    def model(self) -> Model:
        """What the module holds now, copied."""
        buffers = self.layout.flatten_buffers(self.module) if self.layout.buffers else self.w.new_empty(0)
        return Model(self.w.clone(), buffers, self.layout.cut)

    def load(self, model: Model) -> None:
        """Raises ValueError where the model is of another size, RuntimeError in the middle of training."""
        if self._busy:
            raise RuntimeError(
                "task.gradient, predict and train use the module that is being trained: call them before"
            )
        if model.w.shape != self.w.shape:
            raise ValueError(f"a model must have {len(self.w)} parameters, got {tuple(model.w.shape)}")
        self.w.copy_(model.w)
        if self.layout.buffers:
            self.layout.load_buffers(self.module, model.buffers)

    def mode(self, training: bool) -> None:
        """Sets training or eval mode, where it is not set: that visits every module."""
        if self.module.training != training:
            self.module.train(training)
        for norm in self._norms:  # which `gradients` may have left in the other
            norm.train(training)

    def seed(self, seed: int) -> None:
        """Of the device's generator, which dropout draws from."""
        # Not torch.manual_seed: it keeps a traceback for every kind of device that is not in use yet, at each call.
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)
        else:
            torch.default_generator.manual_seed(seed)

    def part(self, name: str | None) -> Trainable:
        """Of the module: "shared", "personal", or all of it (None)."""
        return self._parts[name]

    @cached_property
    def head(self) -> nn.Module:
        """The first module of the personal part or, where nothing is personal, the last linear layer.

        Raises ValueError where there is none of both.
        """
        modules: dict[str, nn.Module] = dict(self.module.named_modules())
        if self._personal:
            names = [name for name, _ in self.module.named_parameters()]
            prefixes = (p for name in names for p in self._personal if name == p or name.startswith(p + "."))
            first = next(prefixes)
            return modules[first] if first in modules else modules[first.rpartition(".")[0]]
        linear = [module for module in modules.values() if isinstance(module, nn.Linear)]
        if not linear:
            raise ValueError("task.embed: the model must have a linear layer, or `model.personal`; it has neither")
        return linear[-1]

    def take_solves(self) -> Solves:
        """What the equilibrium layers have solved since the last call."""
        solves = Solves()
        for layer in self._equilibria:
            solves, layer.solved = solves.plus(layer.solved), Solves()
        return solves

    def _make_part(self, span: slice, which: slice) -> Trainable:
        parameters = self.parameters[which]
        among = {id(parameter) for parameter in parameters}
        bounded = [m for m in self.module.modules() if isinstance(m, BoundedLinear) and id(m.weight) in among]
        return Trainable(self.w[span], self.layout.views(self.w)[which], parameters, span, which, bounded)

    def gradients(
        self, x: Tensor, y: Tensor, parameters: list[nn.Parameter], loss: LossFunction | None = None
    ) -> tuple[Tensor, Sequence[Tensor]]:
        """The loss (0-d), by default the mean of the data's own, and its gradient with respect to each parameter.

        A batch of one sample has no statistics: BatchNorm takes the running ones for it, as in eval mode.
        """
        self.seen += len(y)
        self.passes += 3 * len(y)
        for norm in self._norms:
            norm.train(self.module.training and len(y) > 1)
        value = (loss or self.loss)(self.module(x), y)
        return value.detach(), torch.autograd.grad(value, parameters, allow_unused=True, materialize_grads=True)

    @contextmanager
    def training(self, start: Model, samples: int) -> Iterator[None]:
        """The module in training mode, with the start's values, for nobody else, on so many samples."""
        self.load(start)
        self.mode(training=True)
        self._busy = True
        self._remember(samples)
        try:
            yield
        finally:
            self._busy = False
            self._remember(0)

    def _remember(self, samples: int) -> None:
        for layer in self._equilibria:
            layer.remember(samples)

    def at(self, places: np.ndarray | slice) -> None:
        """Says which of the samples trained on the next batch holds, for equilibrium layers that remember."""
        for layer in self._equilibria:
            if layer.memory is not None:
                layer.memory.places = places if isinstance(places, slice) else torch.from_numpy(places)

    @contextmanager
    def evaluating(self, model: Model) -> Iterator[nn.Module]:
        """The module with the model's values, in eval mode, recording no gradients."""
        self.load(model)
        self.mode(training=False)
        with torch.no_grad():
            yield self.module
