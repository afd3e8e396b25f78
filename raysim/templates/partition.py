"""A partition: say here who gets which samples."""

import numpy as np

from raysim.data import Partitioner, Split
from raysim.parts.part import NonNegative


class PartitionTemplate(Partitioner):
    """Random samples, of which client i gets a share that falls like (i + 1)^-exponent, and one at least."""

    name: str = "template"
    exponent: NonNegative = 0.5
    """How unequal the shares are. 0: all are equal."""

    @property
    def column(self) -> None:  # what samples are divided by: "label", the name of a column, or None for chance alone
        return None

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        if len(split) < clients:
            raise ValueError(f"there must be a sample for each of {clients} clients, got {len(split)}; lower `clients`")
        shares = (1.0 + np.arange(clients)) ** -self.exponent
        sizes = 1 + np.floor(shares / shares.sum() * (len(split) - clients)).astype(np.int64)
        return np.split(generator.permutation(len(split))[: sizes.sum()], np.cumsum(sizes)[:-1])
