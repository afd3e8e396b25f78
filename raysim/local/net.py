"""The one module that a worker has, with which all its clients train in turn."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from raysim.local.model import Model
from raysim.models.layout import Layout


def quadratic(output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The quadratic data's module gives losses already."""
    return output.mean() if reduction == "mean" else output.sum()


LOSSES: dict[str, Callable[..., Tensor]] = {"cross_entropy": F.cross_entropy, "quadratic": quadratic}


class Net:
    """A module whose parameters are views of one flat vector `w`: a change of `w` in place is a change of the module."""

    def __init__(self, module: nn.Module, personal: tuple[str, ...], loss: str, device: torch.device) -> None:
        self.module = module.to(device)
        self.layout = Layout(self.module, personal)
        self.w = self.layout.flatten(self.module)
        self.layout.bind(self.module, self.w)
        self.loss = LOSSES[loss]
        self.device = device
        self.parameters = self.layout.select(self.module)
        self._gradient = torch.zeros_like(self.w)
        self._gradients = self.layout.views(self._gradient)
        self._first_personal = sum(entry.offset < self.layout.cut for entry in self.layout.entries)

    def model(self) -> Model:
        """What the module holds now, copied."""
        return Model(self.w.clone(), self.layout.flatten_buffers(self.module), self.layout.cut)

    def load(self, model: Model) -> None:
        """Raises ValueError where the model is of another size."""
        if model.w.shape != self.w.shape:
            raise ValueError(f"a model must have {len(self.w)} parameters, got {tuple(model.w.shape)}")
        self.w.copy_(model.w)
        self.layout.load_buffers(self.module, model.buffers)

    def seed(self, seed: int) -> None:
        """Of the device's generator, which dropout draws from."""
        # Not torch.manual_seed: it keeps a traceback for every kind of device that is not in use yet, at each call.
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)
        else:
            torch.default_generator.manual_seed(seed)

    def part(self, part: str | None) -> slice:
        """Of the flat vector: "shared", "personal", or all of it (None)."""
        return {None: slice(None), "shared": slice(self.layout.cut), "personal": slice(self.layout.cut, None)}[part]

    def gradient(self, x: Tensor, y: Tensor, part: str | None = None) -> tuple[Tensor, Tensor]:
        """The mean loss (0-d) and its gradient, a view of a buffer that the next call overwrites."""
        span = self.part(part)
        first = self._first_personal
        which = {None: slice(None), "shared": slice(first), "personal": slice(first, None)}[part]
        loss = self.loss(self.module(x), y)
        gradients = torch.autograd.grad(loss, self.parameters[which], allow_unused=True, materialize_grads=True)
        torch._foreach_copy_(self._gradients[which], list(gradients))
        return loss.detach(), self._gradient[span]

    @contextmanager
    def evaluating(self, model: Model) -> Iterator[nn.Module]:
        """The module with the model's values, in eval mode, recording no gradients."""
        self.load(model)
        self.module.eval()
        with torch.no_grad():
            yield self.module
