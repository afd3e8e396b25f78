"""The equilibrium perceptron of FeDEQ.

Le, Nguyen, Nguyen, Hong, Seneviratne, Bao, Tran, Federated deep equilibrium learning: harnessing compact global
representations to enhance personalization, CIKM 2024, eq. (3) and figure 2.
"""

import math
from collections import OrderedDict
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from raysim.models.deq import DEQ
from raysim.parts.part import Count
from raysim.terms import Inputs, TorchModule


class DEQMLP(DEQ):
    """A dense equilibrium layer z = activation(B z + C x + b), one hidden dense layer with ReLU, and the head."""

    takes: ClassVar[tuple[Inputs, ...]] = ("images", "features", "series")

    name: str = "deq_mlp"
    personal: tuple[str, ...] = ("head",)
    width: Count = 512
    """Width of z."""
    hidden: Count = 128
    """Number of units of the hidden dense layer."""
    activation: Literal["relu", "tanh"] = "relu"
    """Activation of the equilibrium layer."""
    kappa: Annotated[float, Field(gt=0, lt=1)] | None = 0.99
    """Largest l1 norm that a row of B may have; a projection after each local step keeps it. null: no limit.

    Below 1, there is exactly one fixed point, and plain iteration finds it."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> TorchModule:
        """Builds layers injection (C and b), equilibrium (B is `equilibrium.g.linear`), hidden and head."""
        import torch
        from torch import nn

        from raysim.models.blocks import DenseCell
        from raysim.models.layers import BoundedLinear

        if self.kappa is None:
            linear = nn.Linear(self.width, self.width, bias=False)
        else:
            linear = BoundedLinear(self.width, self.width, self.kappa)
        cell = DenseCell(linear, {"relu": torch.relu, "tanh": torch.tanh}[self.activation])
        layers: OrderedDict[str, nn.Module] = OrderedDict(
            flatten=nn.Flatten(),
            injection=nn.Linear(math.prod(shape), self.width),
            equilibrium=self.equilibrium(cell),
            hidden=nn.Linear(self.width, self.hidden),
            relu=nn.ReLU(),
            head=nn.Linear(self.hidden, num_classes),
        )
        return nn.Sequential(layers)
