"""What clients do that do not follow the algorithm. To add a behaviour, put it into `BEHAVIOURS`."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from raysim.parts.lazy import torch
from raysim.parts.part import Fraction, NonNegative, OneOf, Part, Positive
from raysim.terms import Record, Tensor


class Behaviour(Part):
    """How the clients of a group deviate from the algorithm. A subclass adds its `name`.

    A client trains as the algorithm says, and keeps its state. What it trains on, and what it sends, may be wrong.
    """

    name: str

    @property
    def needs(self) -> str | None:
        """What the data must have: labels, where it changes them; None: anything will do."""
        return None if type(self).labels is Behaviour.labels else "labels"

    def labels(self, y: np.ndarray, classes: int, draw: np.random.Generator) -> np.ndarray:
        """Returns the labels that a client trains on, (n, ...) int64. y: the right ones. classes: the number of labels.

        draw: the same for all trainings of a client.
        """
        return y

    def sent(self, value: Tensor, draw: torch.Generator) -> Tensor:
        """Returns what is sent in place of an entry of the update or message, in the same shape.

        value: what the algorithm sends; of a model, the difference from the one that was given.
        draw: another one for each training.
        """
        return value

    def distort(self, sent: Record, given: Record, draw: torch.Generator) -> Record:
        """Returns what is sent in place of an update or message. BatchNorm's statistics stay as they are.

        given: the message, or the peer's state, whose entries of the same name and shape entries are relative to.
        """
        if type(self).sent is Behaviour.sent:
            return sent  # the very tensors: a difference that is taken and added again would round
        return {key: value if key == "buffers" else self._entry(key, value, given, draw) for key, value in sent.items()}

    def _entry(self, key: str, value: Tensor, given: Record, draw: torch.Generator) -> Tensor:
        base = given.get(key)
        if base is None or base.shape != value.shape:
            return self.sent(value, draw)
        return base + self.sent(value - base, draw)


class Honest(Behaviour):
    """Does what the algorithm says."""

    name: str = "honest"


class SignFlip(Behaviour):
    """Sends the opposite of its update, times a factor."""

    name: str = "sign_flip"
    scale: Positive = 1.0
    """The factor."""

    def sent(self, value: Tensor, draw: torch.Generator) -> Tensor:
        return -self.scale * value


class Noise(Behaviour):
    """Sends its update with normal noise added to each number."""

    name: str = "noise"
    deviation: NonNegative = 1.0
    """Standard deviation of the noise."""

    def sent(self, value: Tensor, draw: torch.Generator) -> Tensor:
        noise = torch.randn(value.shape, generator=draw, dtype=value.dtype)
        return value + self.deviation * noise.to(value.device)


class Zero(Behaviour):
    """Sends an update of zeros, as if it had not trained."""

    name: str = "zero"

    def sent(self, value: Tensor, draw: torch.Generator) -> Tensor:
        return value * 0


class FlipLabels(Behaviour):
    """Trains on label C - 1 - y in the place of y, of C labels."""

    name: str = "flip_labels"

    def labels(self, y: np.ndarray, classes: int, draw: np.random.Generator) -> np.ndarray:
        return classes - 1 - y


class RandomLabels(Behaviour):
    """Trains on random labels in the place of some."""

    name: str = "random_labels"
    share: Fraction = 1.0
    """Share of its samples, on average, that get one of all labels, all equally likely."""

    def labels(self, y: np.ndarray, classes: int, draw: np.random.Generator) -> np.ndarray:
        drawn = draw.integers(classes, size=y.shape)
        found: np.ndarray = y.copy()
        chosen = draw.random(y.shape) < self.share
        found[chosen] = drawn[chosen]
        return found


BEHAVIOURS: tuple[type[Behaviour], ...] = (Honest, SignFlip, Noise, Zero, FlipLabels, RandomLabels)
ABehaviour = Annotated[Behaviour, OneOf(BEHAVIOURS)]
