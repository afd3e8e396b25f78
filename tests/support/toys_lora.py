"""Modules with layers of all kinds that can have adapters."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from raysim.models import ModelPart
from raysim.terms import Inputs


class Words(nn.Module):
    """Takes images as words, one for each pixel and whether it is dark, and means over their embeddings."""

    def __init__(self, input_shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.pixels = input_shape[-1] * input_shape[-2]
        self.table = nn.Embedding(2 * self.pixels, 8)
        self.wide = Conv1D(12, 8)
        self.head = nn.Linear(12, classes)

    def forward(self, x: Tensor) -> Tensor:
        words = (x.flatten(1) > 0).long() + 2 * torch.arange(self.pixels, device=x.device)
        return self.head(self.wide(self.table(words).mean(1)).relu())


class Half(nn.Module):
    """Computes in bfloat16."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.hidden, self.head = nn.Linear(4 * 36, 32), nn.Linear(32, classes)
        self.bfloat16()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.hidden(self.norm(self.conv(x)).relu().flatten(1)).relu())


class Line(ModelPart):
    """For the quadratic data: x is the weight of a dense layer, which starts at zero, times one."""

    takes: ClassVar[tuple[Inputs, ...]] = ("functions",)
    name: str = "line"

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        return Quadratics(shape[0] // 2)


class Quadratics(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.line = nn.Linear(1, size, bias=False)
        nn.init.zeros_(self.line.weight)

    def forward(self, rows: Tensor) -> Tensor:
        center, slope, curvature = rows.tensor_split((self.line.out_features, rows.shape[1] - 1), 1)
        x = self.line(rows.new_ones(len(rows), 1))
        return (curvature / 2 * (x - center) ** 2 + slope * x).sum(1)
