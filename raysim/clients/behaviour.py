"""What clients do that do not follow the algorithm: the base of all behaviours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raysim.parts.part import Part
from raysim.terms import Record

if TYPE_CHECKING:
    from torch import Generator, Tensor


class Behaviour(Part):
    """How the clients of a group deviate from the algorithm. A subclass adds its `name`.

    A client trains as the algorithm says, and keeps its state. What it trains on, and what it sends, may be wrong.
    """

    name: str

    def labels(self, y: np.ndarray, classes: int, draw: np.random.Generator) -> np.ndarray:
        """Returns the labels that a client trains on, (n, ...) int64. y: the right ones. classes: the number of labels.

        draw: the same for all trainings of a client.
        """
        return y

    def sent(self, value: Tensor, draw: Generator) -> Tensor:
        """Returns what is sent in place of an entry of the update or message, in the same shape.

        value: what the algorithm sends; of a model, the difference from the one that was given.
        draw: another one for each training.
        """
        return value

    def distort(self, sent: Record, given: Record, draw: Generator) -> Record:
        """Returns what is sent in place of an update or message. BatchNorm's statistics stay as they are.

        given: the message, or the peer's state, whose entries of the same name and shape entries are relative to.
        """
        return {key: value if key == "buffers" else self._entry(key, value, given, draw) for key, value in sent.items()}

    def _entry(self, key: str, value: Tensor, given: Record, draw: Generator) -> Tensor:
        base = given.get(key)
        if base is None or base.shape != value.shape:
            return self.sent(value, draw)
        return base + self.sent(value - base, draw)
