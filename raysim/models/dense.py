"""Models of dense layers, and a bare vector."""

import math
from collections import OrderedDict
from typing import ClassVar, Literal

from raysim.models.part import ModelPart
from raysim.parts.errors import BadValue
from raysim.parts.part import Count
from raysim.terms import Inputs, TorchModule


class Vector(ModelPart):
    """A single vector x, for the quadratic data set; its output is the loss itself, for checking algorithms by hand."""

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
            text = f"inputs must be rows [a, s, h] of 2 size + 1 floats, got shape {shape!r}"
            raise BadValue(f"{text}; use it with the quadratic data set")
        size = shape[0] // 2
        start = self.start if isinstance(self.start, tuple) else (self.start,) * size
        if len(start) != size:
            text = f"must have as many values as the data's vectors, which is {size}, got {len(start)}: {start!r}"
            raise BadValue(text, "start")
        return QuadraticLoss(torch.tensor(start))


class Linear(ModelPart):
    """A single linear layer: linear regression, or softmax regression where there are labels."""

    takes: ClassVar[tuple[Inputs, ...]] = ("images", "features", "series", "volumes")
    normalises: ClassVar[bool] = False

    name: str = "linear"
    bias: bool = False
    """Whether the layer has a bias."""
    start: Literal["zeros", "random"] = "zeros"
    """Initial values of the weights: zeros, or torch's default random ones."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds the layer `head`, on flattened inputs."""
        from torch import nn

        head = nn.Linear(math.prod(shape), num_classes, bias=self.bias)
        if self.start == "zeros":
            for parameter in head.parameters():
                nn.init.zeros_(parameter)
        return nn.Sequential(OrderedDict(flatten=nn.Flatten(), head=head))


class MLP(ModelPart):
    """A multilayer perceptron on flattened inputs."""

    takes: ClassVar[tuple[Inputs, ...]] = ("images", "features", "series", "volumes")
    normalises: ClassVar[bool] = False

    name: str = "mlp"
    hidden: tuple[Count, ...] = (200,)
    """Widths of the hidden layers; [] gives softmax regression."""
    activation: Literal["relu", "tanh", "gelu"] = "relu"
    """Activation after each hidden layer."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds layers hidden1, hidden2, ... and head, with torch's default initial values."""
        from torch import nn

        activation = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU}[self.activation]
        layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
        width = math.prod(shape)
        for i, units in enumerate(self.hidden, start=1):
            layers[f"hidden{i}"] = nn.Linear(width, units)
            layers[f"{self.activation}{i}"] = activation()
            width = units
        layers["head"] = nn.Linear(width, num_classes)
        return nn.Sequential(layers)
