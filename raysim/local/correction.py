"""What an algorithm adds to gradients: a proximal term, a dual, a control variate."""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from raysim.local.net import Trainable

# From the flat vector, or the part of it that is trained, to a vector that is added to its gradient. One with a second
# argument gets that gradient, too.
Correction = Callable[..., Tensor]


class Pull:
    """A correction at work, or none. sees: whether it gets the gradient, too."""

    def __init__(self, correction: Correction | None, part: Trainable) -> None:
        self._correction, self._part = correction, part
        self.sees = correction is not None and _takes_two(correction)
        if self.sees:
            self._vector, self._views = part.flat()

    def __call__(self, gradients: Sequence[Tensor] = ()) -> Tensor | None:
        """Returns what is added. gradients: of each parameter, for one that sees them."""
        if self._correction is None:
            return None
        if not self.sees:
            return self._correction(self._part.w)
        torch._foreach_copy_(self._views, list(gradients))
        return self._correction(self._part.w, self._vector)


def _takes_two(correction: Callable[..., Any]) -> bool:
    needed = [one for one in signature(correction).parameters.values() if one.default is one.empty]
    return sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in needed) == 2
