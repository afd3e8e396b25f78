"""Modules with layers of all kinds that can have adapters."""

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D


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
