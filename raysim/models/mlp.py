"""The multilayer perceptron."""

import math
from collections import OrderedDict
from typing import ClassVar, Literal

from raysim.models.part import ModelPart
from raysim.parts.part import Count
from raysim.terms import Inputs, TorchModule


class MLP(ModelPart):
    """A multilayer perceptron on flattened inputs."""

    takes: ClassVar[tuple[Inputs, ...]] = ("images", "features", "series")
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
