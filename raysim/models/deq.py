"""The base of models with a deep equilibrium layer: infinitely deep networks with the parameters of one layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from raysim.models.part import ModelPart
from raysim.models.solver import SOLVERS, Anderson, Backward, Solver, Start
from raysim.part import OneOf

if TYPE_CHECKING:
    from torch import nn


class DEQ(ModelPart):
    """A model with a deep equilibrium layer z = g(z, x)."""

    solver: Annotated[Solver, OneOf(SOLVERS)] = Anderson()
    backward: Backward = "jacobian_free"
    """Gradients: of the last application of g alone, or exact ones, by another solve."""
    start: Start = "injection"
    """The z that solves start from: zeros, or x itself. last: where the solve of the same sample ended when the client
    last came to it in the same training, or else x; a state of each of its samples is kept meanwhile."""

    def equilibrium(self, g: nn.Module) -> nn.Module:
        """The layer that finds the fixed point of g, a module of z and x."""
        from raysim.models.equilibrium import Equilibrium

        return Equilibrium(g, self.solver, self.backward, self.start)
