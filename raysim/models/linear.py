"""One linear layer."""

import math
from collections import OrderedDict
from typing import ClassVar, Literal

from raysim.models.part import ModelPart
from raysim.terms import Inputs, TorchModule


class Linear(ModelPart):
    """A single linear layer: linear regression, or softmax regression where there are labels."""

    takes: ClassVar[tuple[Inputs, ...]] = ("images", "features", "series")
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
