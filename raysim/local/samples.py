"""From stored samples to what a module takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from raysim.data import Split


class Samples:
    """Samples to train on, loaded when they are needed: inputs (n, ...) and labels or targets (n, ...).

    load: gives those at some places, or at all of them.
    """

    def __init__(self, number: int, load: Callable[[np.ndarray | slice], tuple[Tensor, Tensor]]) -> None:
        self._number, self._load = number, load

    @classmethod
    def of(cls, x: Tensor, y: Tensor) -> Samples:
        """Those that are there already."""
        return cls(len(y), lambda places: (x[places], y[places]))

    def relabelled(self, y: Tensor) -> Samples:
        """The same inputs with other targets, (n, ...)."""

        def load(places: np.ndarray | slice) -> tuple[Tensor, Tensor]:
            x, _ = self._load(places)
            return x, y[places if isinstance(places, slice) else torch.from_numpy(places).to(y.device)]

        return Samples(len(self), load)

    def __len__(self) -> int:
        return self._number

    @cached_property
    def all(self) -> tuple[Tensor, Tensor]:
        """In order; kept."""
        return self._load(slice(None))

    def take(self, places: np.ndarray) -> tuple[Tensor, Tensor]:
        """Those at the places, copied. Only they are loaded, where they are not all."""
        if "all" not in self.__dict__ and len(places) < self._number:
            return self._load(places)
        x, y = self.all
        chosen = torch.from_numpy(places).to(x.device)
        return x[chosen], y[chosen]


class Loader:
    """Normalises samples on the device: stored as uint8 images (n, H, W, C) or float32, given as float32.

    Images come out as (n, C, H, W) in channels-last memory, which is how they are stored. Tokens are stored as int16
    and given as int64.
    """

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...], device: torch.device) -> None:
        self.device = device
        if mean:
            self._scale = 1 / (255 * torch.tensor(std, device=device))
            self._shift = -torch.tensor(mean, device=device) / torch.tensor(std, device=device)

    def __call__(self, split: Split, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Inputs of these rows, and labels (n, ...) int64 or targets (n,) float32, in memory of torch's own."""
        stored = torch.from_numpy(split.x[rows]).to(self.device)
        y = torch.from_numpy(split.y[rows]).to(self.device)
        if stored.dtype == torch.int16:
            return stored.to(torch.int64), y
        if stored.dtype != torch.uint8:
            return stored.clone(), y
        images = stored.to(torch.float32).mul_(self._scale).add_(self._shift)
        return images.permute(0, 3, 1, 2), y
