"""A bare vector that minimises quadratic losses, for checking algorithms by hand."""

from typing import ClassVar

from raysim.models.part import ModelPart
from raysim.parts.errors import BadValue
from raysim.terms import Inputs, TorchModule


class Vector(ModelPart):
    """A single vector x, for the quadratic data set; its output is the loss itself."""

    takes: ClassVar[tuple[Inputs, ...]] = ("functions",)
    normalises: ClassVar[bool] = False

    name: str = "vector"
    start: tuple[float, ...] | float = 0.0
    """The initial x, or the initial value of all its elements."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds a module with one parameter `x` (size,). It takes rows [a, s, h] (B, 2 size + 1) and returns (B,).

        The output is h/2 |x - a|^2 + <s, x>. num_classes is not used.
        """
        import torch

        from raysim.models.layers import QuadraticLoss

        if len(shape) != 1 or shape[0] < 3 or shape[0] % 2 == 0:
            raise BadValue(
                f"inputs must be rows [a, s, h] of 2 size + 1 floats, got shape {shape!r}; "
                "use it with the quadratic data set"
            )
        size = shape[0] // 2
        if not isinstance(self.start, tuple):
            return QuadraticLoss(torch.full((size,), self.start))
        if len(self.start) != size:
            raise BadValue(
                f"must have as many values as the data's vectors, which is {size}, "
                f"got {len(self.start)}: {self.start!r}",
                "start",
            )
        return QuadraticLoss(torch.tensor(self.start))
