"""Models of several widths: one that can be followed with pencil and paper, and modules that can or cannot be cut."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from raysim.models.part import ModelPart, share_of
from raysim.terms import Inputs


class Same(nn.Module):
    """The loss h/2 |x|^2 + (s - h a) sum(x) of a parameter x of any shape, which is least at a where s is 0."""

    def __init__(self, start: float, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.full(shape, start))

    def forward(self, rows: Tensor) -> Tensor:
        size = rows.shape[1] // 2
        a, s, h = rows[:, 0], rows[:, size], rows[:, -1]
        flat = self.x.flatten()
        return h / 2 * flat.square().sum() + (s - h * a) * flat.sum()


class Block(ModelPart):
    """A parameter of some shape, of which each dimension is cut."""

    takes: ClassVar[tuple[Inputs, ...]] = ("functions",)
    channels_last: ClassVar[bool] = False
    normalises: ClassVar[bool] = False

    name: str = "block"
    start: float = 0.0
    sizes: tuple[int, ...] = (4,)

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        return Same(self.start, self.sizes)

    def build_at(self, width: float, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        return Same(self.start, tuple(share_of(size, width) for size in self.sizes))


class Normed(nn.Sequential):
    """A convolution with BatchNorm."""

    def __init__(self, input_shape: tuple[int, ...], classes: int) -> None:
        conv, head = nn.Conv2d(input_shape[0], 6, 3), nn.Linear(6, classes)
        super().__init__(conv, nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)


class Wide(nn.Module):
    """A module with a parameter `width`."""

    def __init__(self, input_shape: tuple[int, ...], classes: int, width: int = 10) -> None:
        super().__init__()
        self.width = width
        self.hidden, self.head = nn.Linear(64, width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.hidden(x.flatten(1)).view(-1, self.width).relu())


class Joined(nn.Module):
    """Channels of two layers side by side, whose units in a narrower model would be other ones."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(64, 6), nn.Linear(64, 6)
        self.head = nn.Linear(12, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.cat((self.one(x.flatten(1)), self.other(x.flatten(1))), 1))
