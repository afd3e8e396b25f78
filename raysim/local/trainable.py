"""The part of a module's parameters that is trained, and what an algorithm adds to its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from raysim.models.layers import BoundedLinear
from raysim.models.layout import Layout, view_of

# From the flat vector, or the part of it that is trained, to a vector that is added to its gradient, such as that of a
# proximal term, a dual or a control variate. One with a second argument gets that gradient, too.
Correction = Callable[..., Tensor]


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
