"""Samples for training, their way from storage to what a module takes, and the augmentation of mini-batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from raysim.data import Split
from raysim.data.meaning import NamedArrays
from raysim.local.augment import Augmentation

SEEDS = 64  # that are drawn at once
# From inputs, their split, their rows in it and a client, to the inputs as that client has them.
Skewed = Callable[[np.ndarray, Split, np.ndarray, int], np.ndarray] | None


class Samples:
    """Samples to train on: inputs (n, ...), or several by name, and labels or targets (n, ...), loaded when needed.

    load: returns the inputs and labels at some places, or at all of them.
    """

    def __init__(self, number: int, load: Callable[[np.ndarray | slice], tuple[Tensor, Tensor]]) -> None:
        self._number, self._load = number, load

    @classmethod
    def of(cls, x: Tensor, y: Tensor) -> Samples:
        """Makes samples of tensors that are loaded already."""
        return cls(len(y), lambda places: (x[places], y[places]))

    def relabelled(self, y: Tensor) -> Samples:
        """Returns these inputs with other targets, (n, ...)."""

        def load(places: np.ndarray | slice) -> tuple[Tensor, Tensor]:
            x, _ = self._load(places)
            return x, y[places if isinstance(places, slice) else torch.from_numpy(places).to(y.device)]

        return Samples(len(self), load)

    def __len__(self) -> int:
        return self._number

    @cached_property
    def all(self) -> tuple[Tensor, Tensor]:
        """All inputs and labels, in order. They are kept once loaded."""
        return self._load(slice(None))

    def take(self, places: np.ndarray, *, again: bool = True) -> tuple[Tensor, Tensor]:
        """Returns a copy of the inputs and labels at some places. Loads no others, unless all are loaded already.

        again: whether they will be asked for again, so that all of them are kept once all are loaded.
        """
        if "all" not in self.__dict__ and (len(places) < self._number or not again):
            return self._load(places)
        x, y = self.all
        chosen = torch.from_numpy(places).to(x.device)
        return x[chosen], y[chosen]


class Loader:
    """Loads stored samples on the device, as a module takes them.

    uint8 images (n, H, W, C) become normalised float32 images (n, C, H, W) in channels-last memory, which is how they
    are stored. Tokens, int16 or int32, become int64. float32 inputs stay as they are. Of named inputs, all but floats
    become int64.
    """

    def __init__(
        self, mean: tuple[float, ...], std: tuple[float, ...], device: torch.device, skewed: Skewed = None
    ) -> None:
        """skewed: returns inputs as a client has them, where clients' inputs differ; None: they do not."""
        self.device, self._skewed = device, skewed
        if mean:
            self._scale = 1 / (255 * torch.tensor(std, device=device))
            self._shift = -torch.tensor(mean, device=device) / torch.tensor(std, device=device)

    def __call__(self, split: Split, rows: np.ndarray, client: int | None = None) -> tuple[Tensor, Tensor]:
        """Returns the inputs of some rows, and their labels (n, ...) int64 or targets (n,) float32, in new memory.

        client: whose samples they are, if they are some client's own.
        """
        found = split.x[rows]
        y = torch.from_numpy(split.y[rows]).to(self.device)
        if isinstance(found, NamedArrays):
            return found.map(self._plain), y  # type: ignore[return-value]
        stored = torch.from_numpy(found).to(self.device)
        if stored.dtype in (torch.int16, torch.int32):
            return stored.to(torch.int64), y
        if client is not None and self._skewed is not None:
            stored = torch.from_numpy(self._changed(split, rows, client)).to(self.device)
        if found.dtype != np.uint8:
            return stored.clone(), y
        images = stored.to(torch.float32).mul_(self._scale).add_(self._shift)
        return images.permute(0, 3, 1, 2), y

    def _plain(self, stored: np.ndarray) -> Tensor:
        """Returns an array of named inputs in new memory."""
        kind = torch.float32 if stored.dtype == np.float32 else torch.int64
        return torch.from_numpy(stored).to(self.device, kind, copy=True)

    def _changed(self, split: Split, rows: np.ndarray, client: int) -> np.ndarray:
        """Returns stored inputs as a client has them, float32. Pixels are from 0 to 1 only while they are changed."""
        assert self._skewed is not None
        scale = np.float32(255 if split.x.dtype == np.uint8 else 1)
        return np.ascontiguousarray(self._skewed(split.x[rows].astype(np.float32) / scale, split, rows, client) * scale)


class Pixels:
    """Turns images from the form that a module takes, normalised by channel, into pixels from 0 to 1, and back."""

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...], device: torch.device) -> None:
        self._mean, self._std = (torch.tensor(one, device=device).view(-1, 1, 1) for one in (mean, std))

    def seen(self, x: Tensor) -> Tensor:
        """Returns images as pixels from 0 to 1."""
        return (x * self._std + self._mean).clamp(0, 1)

    def normalised(self, x: Tensor) -> Tensor:
        """Returns pixels as a module takes them."""
        return ((x - self._mean) / self._std).contiguous(memory_format=torch.channels_last)


class Augmenter:
    """Augments batches, one after another.

    pixels: what makes images of inputs; None: inputs are no images. generator: for seeds; each batch takes one. Many
    are drawn at once, because reading a number of a GPU waits until its work is over.
    """

    def __init__(
        self,
        parts: Sequence[Augmentation],
        pixels: Pixels | None,
        classes: int,
        generator: Callable[[], torch.Generator],
    ) -> None:
        self._parts, self._pixels, self._classes, self._generator = parts, pixels, classes, generator
        self._seeds: list[int] = []  # of the batches to come, the last first

    def __call__(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if not self._seeds:
            generator = self._generator()
            self._seeds = torch.randint(2**62, (SEEDS,), generator=generator, device=generator.device).tolist()[::-1]
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self._seeds.pop())
            x = x if self._pixels is None else self._pixels.seen(x)
            for part in self._parts:
                x, y = part.apply(x, y, self._classes)
        return x if self._pixels is None else self._pixels.normalised(x), y
