"""Models of several architectures whose training can be followed with pencil and paper."""

import torch
from torch import Tensor, nn


class Constant(nn.Module):
    """Gives the same logits for every input, which are its parameters."""

    def __init__(self, logits: tuple[float, ...] = (0.0, 0.0)) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits))

    def forward(self, x: Tensor) -> Tensor:
        return self.logits + x.new_zeros(len(x), 1)


def as_it_is(bias: bool = True) -> nn.Sequential:
    """Embeds an input as it is, and gives logits of zero for two labels."""
    head = nn.Linear(2, 2, bias=bias)
    for parameter in head.parameters():
        nn.init.zeros_(parameter)
    return nn.Sequential(nn.Identity(), head)


class Normed(nn.Sequential):
    """A network with BatchNorm, whose embeddings have 16 numbers."""

    def __init__(self, input_shape: tuple[int, ...], classes: int) -> None:
        super().__init__(
            nn.Conv2d(input_shape[0], 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(16, classes),
        )
