"""Which rows of a split each client holds."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Holdings:
    """Which rows each client holds: client i has `rows[offsets[i] : offsets[i + 1]]`, ascending. Both int64."""

    rows: np.ndarray
    offsets: np.ndarray  # (clients + 1,)

    @classmethod
    def of(cls, parts: list[np.ndarray]) -> "Holdings":
        """Makes holdings of the rows of each client, given in any order."""
        sizes = np.fromiter(map(len, parts), np.int64, len(parts))
        rows = np.concatenate(parts).astype(np.int64)
        order = np.lexsort((rows, np.repeat(np.arange(len(parts)), sizes)))  # by client, then by row
        return cls(rows[order], np.append(0, np.cumsum(sizes)))

    @classmethod
    def none(cls, clients: int) -> "Holdings":
        """Makes holdings of clients that hold nothing."""
        return cls(np.empty(0, dtype=np.int64), np.zeros(clients + 1, dtype=np.int64))

    def __getitem__(self, client: int) -> np.ndarray:
        return self.rows[self.offsets[client] : self.offsets[client + 1]]

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows that each client holds, int64 (clients,)."""
        return np.diff(self.offsets)

    def without(self, rows: np.ndarray) -> "Holdings":
        """Returns holdings without these rows, whoever holds them."""
        kept = ~np.isin(self.rows, rows)
        return Holdings(self.rows[kept], np.append(0, np.cumsum(kept))[self.offsets])

    def count(self, labels: np.ndarray) -> np.ndarray:
        """Counts rows by client and label (n,). Returns client, label and count, int64 (3, cells), sorted."""
        client = np.repeat(np.arange(self.clients), self.sizes)
        distinct, label = np.unique(labels[self.rows], return_inverse=True)
        cells, samples = np.unique(client * len(distinct) + label, return_counts=True)
        return np.stack([cells // max(len(distinct), 1), distinct[cells % max(len(distinct), 1)], samples])


def distinct(rows: np.ndarray, samples: int) -> np.ndarray:
    """Returns the distinct rows, ascending, int64. samples: their split's number. It is faster than `np.unique`."""
    there = np.zeros(samples, dtype=bool)
    there[rows] = True
    return np.flatnonzero(there)
