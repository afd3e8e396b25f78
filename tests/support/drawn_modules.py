"""Modules drawn at random, of what decides whether training is that of a plain loop."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


class Drawn(nn.Module):
    """A module drawn by a seed: norms of several kinds, frozen or not, tied weights, masks, modes of its own,
    parametrised weights, and a count that it keeps."""

    def __init__(self, seed: int, classes: int = 10) -> None:
        super().__init__()
        draw = np.random.default_rng(seed)
        width, pick = 4, lambda *kinds: kinds[draw.integers(len(kinds))]
        norms: list[Any] = [
            lambda: nn.BatchNorm2d(width),
            lambda: nn.BatchNorm2d(width, momentum=None),
            lambda: nn.BatchNorm2d(width, affine=False),
            lambda: nn.BatchNorm2d(width, track_running_stats=False),
            lambda: nn.InstanceNorm2d(width, track_running_stats=True),
            lambda: nn.GroupNorm(2, width),
        ]
        self.first = nn.Conv2d(1, width, 3, padding=1)
        self.norm = pick(*norms)()
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.norm_too = pick(*norms)()
        self.drop = nn.Dropout(pick(0.0, 0.4))
        self.third, self.fourth = nn.Linear(width, width), nn.Linear(width, width)
        if pick(True, False):
            self.fourth.weight = self.third.weight
        self.head = nn.Linear(width, classes)
        self.register_buffer("mask", torch.tensor([0.0, -torch.inf]))
        self.kept = pick((), ("norm",), ("norm", "norm_too"), ("",))  # what stays in eval mode
        if pick(True, False):
            self.norm.requires_grad_(False)
        parametrise = pick(None, nn.utils.parametrizations.spectral_norm, nn.utils.parametrizations.weight_norm)
        if parametrise:
            parametrise(self.head)
        self.counts, self.steps = pick(True, False), 0  # how often it was called in training

    def train(self, mode: bool = True) -> "Drawn":
        super().train(mode)
        for name in self.kept:
            nn.Module.train(self.get_submodule(name), False)
        return self

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.norm(self.first(x)))
        x = torch.relu(self.norm_too(self.second(x))).mean((2, 3))
        x = x + self.mask[0]
        if self.counts and self.training:
            self.steps += 1
            x = x / self.steps
        return self.head(self.drop(self.fourth(torch.relu(self.third(x)))))


def drawn(seed: int) -> Drawn:
    torch.manual_seed(seed)
    return Drawn(seed)


def of_seed(seed: int) -> nn.Module:
    """For scenarios: whichever module the seed draws."""
    return Drawn(seed)


def whole(classes: int, seed: int = 5) -> nn.Module:
    """For scenarios: norms that are kept in eval mode, and a mask."""
    module = Drawn(seed)
    assert "norm" in module.kept
    return module
