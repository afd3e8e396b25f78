"""What is trained: a part of a module's parameters, the gradient of a mini-batch, and what an algorithm adds to it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from raysim.data.dataset import IGNORED
from raysim.data.named import NamedArrays
from raysim.local.gradients import Gradient, GradientPoint
from raysim.local.outputs import LossFunction
from raysim.models.layers import BoundedLinear
from raysim.models.layout import Layout, view_of

BatchGradient = tuple[Tensor, Sequence[Tensor]]  # a batch's loss, 0-d, and the gradient of each parameter
Plain = Callable[[Tensor, Tensor], BatchGradient]  # from the inputs and targets of a batch
Taken = Callable[[Tensor, Tensor, BatchGradient | None], BatchGradient]  # the last: the plain one, if it is there
# From the flat vector, or the part of it that is trained, to a vector that is added to its gradient, such as that of a
# proximal term, a dual or a control variate. One with a second argument gets that gradient, too.
Correction = Callable[..., Tensor]

# Attention and LSTMs of a CPU go through the samples one by one, which is right, only slower.
warnings.filterwarnings("ignore", message="There is a performance drop because we have not yet implemented")


class Trainable(NamedTuple):
    """The part of a module's parameters that is trained."""

    w: Tensor  # (n,), a view of the module's flat vector
    views: list[Tensor]  # pieces of w, each in the shape of its parameter
    parameters: list[nn.Parameter]
    span: slice  # where w lies in the flat vector of all parameters
    which: slice  # where the parameters lie in the list of all parameters
    bounded: list[BoundedLinear]  # layers with a bound on weights that are trained
    layout: Layout  # of all parameters

    def project(self) -> None:
        """Moves bounded weights back within their bounds, in place. To be called after each step."""
        for layer in self.bounded:
            layer.project()

    def flat(self) -> tuple[Tensor, list[Tensor]]:
        """Returns zeros in the shape of `w`, and their views in the shapes of the parameters."""
        whole = torch.zeros(self.layout.size, device=self.w.device)
        return whole[self.span], self.layout.views(whole)[self.which]

    def pieces(self, vector: Tensor) -> list[Tensor]:
        """Returns views of a vector (n,) like `w` in the shapes of the parameters."""
        first, entries = self.span.start or 0, self.layout.entries[self.which]
        return [view_of(vector[e.offset - first : e.offset - first + e.size], e) for e in entries]

    def joined(self, gradients: Sequence[Tensor]) -> Tensor:
        """Returns the gradients of the parameters as one new vector in the shape of `w`."""
        vector, views = self.flat()
        torch._foreach_copy_(views, list(gradients))
        return vector


class AddedGradient:
    """A correction at work, or none. by_gradient: whether it gets the gradient, too."""

    def __init__(self, correction: Correction | None, part: Trainable) -> None:
        self._correction, self._part = correction, part
        self.by_gradient = correction is not None and _takes_two(correction)
        if self.by_gradient:
            self._vector, self._views = part.flat()

    def ahead(self) -> Tensor | None:
        """Returns what is added, before the gradient is known; None if nothing is, or if it depends on the gradient."""
        return None if self._correction is None or self.by_gradient else self._correction(self._part.w)

    def to(self, gradients: Sequence[Tensor], ahead: Tensor | None) -> Tensor | None:
        """Returns what is added to the gradients of the parameters. ahead: what the method of that name returned."""
        if self._correction is None or not self.by_gradient:
            return ahead
        torch._foreach_copy_(self._views, list(gradients))
        return self._correction(self._part.w, self._vector)


def _takes_two(correction: Callable[..., Any]) -> bool:
    needed = [one for one in signature(correction).parameters.values() if one.default is one.empty]
    return sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in needed) == 2


def gradient_of(
    parts: Sequence[Gradient],
    trained: Trainable,
    plain: Plain,
    point: GradientPoint,
    flat: tuple[Tensor, list[Tensor]] | None = None,
) -> Taken:
    """Returns a function that takes the gradient of a batch as the parts, `local.gradients`, say.

    It gets the batch and, if that is taken already, its plain gradient. plain: takes that. flat: where it is joined, as
    `Trainable.flat` returns it; None: in a new vector.
    """
    if not parts:
        return lambda x, y, ready: ready or plain(x, y)
    vector, views = flat or trained.flat()
    waiting: list[tuple[Tensor, BatchGradient]] = []  # the plain gradient of a batch that is taken already

    def take(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        is_ready = waiting and waiting[0][0] is x  # a part may ask for that of a piece of the batch
        value, pieces = waiting.pop()[1] if is_ready else plain(x, y)
        torch._foreach_copy_(views, list(pieces))
        return value, vector

    for one in parts:
        take = partial(one.take, take, point)

    def taken(x: Tensor, y: Tensor, ready: BatchGradient | None) -> BatchGradient:
        waiting[:] = [] if ready is None else [(x, ready)]
        value, gradient = take(x, y)
        return value, point.pieces(gradient)

    return taken


def gradient_of_each(
    module: nn.Module, parameters: list[nn.Parameter], loss: LossFunction, x: Tensor, y: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """Returns the loss of each sample of a batch, (n,), and its gradient for each parameter, (n, ...).

    A sample's loss is that of a batch which holds nothing else. Samples none of whose labels count are left out.
    """
    if y.ndim > 1 and not y.is_floating_point() and not bool((counts := (y != IGNORED).flatten(1).any(1)).all()):
        x, y = x[counts], y[counts]
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    values = {names[id(parameter)]: parameter.detach() for parameter in parameters}
    named = isinstance(x, NamedArrays)

    def of_one(values: dict[str, Tensor], x: Any, y: Tensor) -> Tensor:
        batch = NamedArrays({name: one[None] for name, one in x.items()}) if named else x[None]
        output = functional_call(module, values, (batch,))
        return loss(output.float(), y[None])

    each = vmap(grad_and_value(of_one), in_dims=(None, 0, 0), randomness="different")
    with torch.no_grad():  # nothing needs gradients of gradients
        gradients, losses = each(values, dict(x.items()) if isinstance(x, NamedArrays) else x, y)
    return losses, [gradients[name] for name in values]
