"""A model: say here where its architecture comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.models import ModelPart
from raysim.parts.part import Count

if TYPE_CHECKING:
    from torch import nn


class ModelTemplate(ModelPart):
    """One hidden layer with the activation tanh, on flattened inputs."""

    name: str = "template"
    width: Count = 32
    """Units of the hidden layer."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        # torch is imported here and not at the top, so that checking a scenario is fast
        from collections import OrderedDict
        from math import prod

        from torch import nn

        layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())  # from inputs (B, *shape)
        layers["hidden"] = nn.Linear(prod(shape), self.width)
        layers["tanh"] = nn.Tanh()
        layers["head"] = nn.Linear(self.width, num_classes)  # to logits (B, num_classes)
        return nn.Sequential(layers)
