"""Layers whose fixed points are known, or found in a few ways."""

import torch
from torch import Tensor, nn

from raysim.models import Anderson, Broyden, Iteration
from raysim.models.solver import Solver

EXACT = {"tolerance": 1e-6, "max_iterations": 200}
SOLVERS: list[Solver] = [
    Iteration(**EXACT),
    Anderson(**EXACT),
    Anderson(**EXACT, history=2, ridge=0.0, damping=0.5),
    Broyden(**EXACT),
]
CPU = torch.device("cpu")


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


class Cell(nn.Module):
    """g(z, x) = tanh(B z + C x), a contraction."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.b = nn.Parameter(0.6 * torch.linalg.qr(draw(width, width))[0])
        self.c = nn.Parameter(draw(width, width, seed=1))

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(z @ self.b.T + x @ self.c.T)


class Scalar(nn.Module):
    """g(z) = ReLU(B z + b) with B = 1/2 and b = 1."""

    def __init__(self) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.tensor(0.5))
        self.a = nn.Parameter(torch.tensor(1.0))

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.relu(self.b * z + self.a)


MODEL = {"name": "deq_mlp", "width": 24, "hidden": 16}
