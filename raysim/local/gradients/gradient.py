"""What is done with the gradient of a mini-batch before the optimiser gets it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from raysim.schedules import Schedulable

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# From the inputs and labels of a batch to its loss, 0-d, and its gradient, (n,), which the next call may overwrite.
Take = Callable[["Tensor", "Tensor"], tuple["Tensor", "Tensor"]]


class GradientPoint(NamedTuple):
    """Where a gradient is taken."""

    w: Tensor  # (n,), the parameters that are trained; they may be moved, and must be put back
    pieces: Callable[[Tensor], list[Tensor]]  # cuts a vector (n,) into views in the shapes of the parameters
    generator: Callable[[], torch.Generator]  # for draws; one for each training, of a key of its own


class Gradient(Schedulable):
    """A way to take or change the gradient of a mini-batch. A subclass adds its `name`."""

    passes: ClassVar[int] = 1
    """How many gradients of each sample it takes."""

    name: str

    @abstractmethod
    def take(self, before: Take, at: GradientPoint, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Returns a batch's loss, 0-d, and its gradient, (n,).

        before: takes a gradient as the parts named before this one do. x, y: the batch.
        """
