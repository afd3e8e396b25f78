"""The base of models with a deep equilibrium layer: infinitely deep networks with the parameters of one layer."""

from typing import Annotated

from raysim.models.part import ModelPart
from raysim.models.solver import SOLVERS, Anderson, Backward, Solver, Start
from raysim.parts.part import OneOf
from raysim.terms import TorchModule


class DEQ(ModelPart):
    """A model with a deep equilibrium layer z = g(z, x)."""

    solver: Annotated[Solver, OneOf(SOLVERS, "raysim.solvers")] = Anderson()
    """Solver that finds the fixed point."""
    backward: Backward = "jacobian_free"
    """How gradients are computed. jacobian_free: those of the last application of g alone, as in FeDEQ's paper.
    implicit: exact ones, by another solve with `solver`, as in the authors' code for text, with broyden.
    conjugate_gradient: exact ones, by conjugate gradients on the normal equations, with the authors' tolerance of
    0.001 and at most 50 iterations, as in their code for images."""
    start: Start = "injection"
    """The z at which a solve starts. zeros; injection: x itself; last: where the last solve of the same sample ended in
    the client's current training, or x the first time; this keeps a z for each of its samples in memory."""

    def equilibrium(self, g: TorchModule) -> TorchModule:
        """Returns the layer that finds the fixed point of g, a module of z and x."""
        from raysim.models.equilibrium import Equilibrium

        return Equilibrium(g, self.solver, self.backward, self.start)
