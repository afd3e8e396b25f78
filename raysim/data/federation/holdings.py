"""Which rows of a split each client holds: to train on, to test its own model on, or set aside for validation."""

from dataclasses import dataclass

import numpy as np

from raysim.data.dataset import Split, held_out_size
from raysim.parts.errors import BadInput
from raysim.parts.rng import Stream


@dataclass(frozen=True)
class Holdings:
    """Which rows each client holds: client i has `rows[offsets[i] : offsets[i + 1]]`, ascending. Both int64."""

    rows: np.ndarray
    offsets: np.ndarray  # (clients + 1,)

    @classmethod
    def by_owner(cls, rows: np.ndarray, owner: np.ndarray, clients: int) -> "Holdings":
        """Makes holdings of rows, in any order, and the client that holds each of them."""
        order = np.lexsort((rows, owner))  # by client, then by row
        return cls(rows[order].astype(np.int64), np.append(0, np.cumsum(np.bincount(owner, minlength=clients))))

    @classmethod
    def by_client(cls, parts: list[np.ndarray]) -> "Holdings":
        """Makes holdings of the rows of each client, given in any order."""
        return cls.by_owner(np.concatenate(parts), np.repeat(np.arange(len(parts)), list(map(len, parts))), len(parts))

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


def hold_out(parts: list[np.ndarray], share: float, seed: int) -> tuple[Holdings, Holdings]:
    """Returns the rows that each client trains on, and a random share of its rows that it tests on instead.

    A row that a client holds several times counts once, so that the client never trains on what it tests on.
    """
    if not share:
        return Holdings.by_client(parts), Holdings.none(len(parts))
    held, held_out = [], []
    draws = Stream(seed, "local test")
    repeated = np.bincount(np.concatenate(parts)).max(initial=0) > 1  # by one client, or by several
    for client, rows in enumerate(parts):
        once = np.unique(rows) if repeated else rows
        shuffled = draws(client).permutation(once)
        tested, others = np.split(shuffled, [held_out_size(len(shuffled), share)])
        held_out.append(tested)
        held.append(rows[~np.isin(rows, tested)] if repeated else others)
    return Holdings.by_client(held), Holdings.by_client(held_out)


def set_aside(
    held: Holdings, participants: int, share: float, public: np.ndarray, seed: int
) -> tuple[Holdings, Holdings]:
    """Returns what clients still hold, and a random share of each one's rows that are set aside for validation.

    participants: number of clients that set rows aside; they are the first ones. public: rows that never are.
    """
    if not share:
        return held, Holdings.none(held.clients)
    aside = [np.empty(0, dtype=np.int64)] * held.clients
    draws, others = Stream(seed, "validation"), held.without(public)
    for client in range(participants):
        free = np.unique(others[client])
        aside[client] = draws(client).permutation(free)[: held_out_size(len(free), share)]
    rows = Holdings.by_client(aside)
    return held.without(rows.rows), rows


def divide_alike(
    train: Split, parts: list[np.ndarray], test: Split, column: str | None, generator: np.random.Generator
) -> Holdings:
    """Divides the test samples as the training samples are divided. Returns each client's rows, which are disjoint.

    For each value of the column, clients share the test samples in the proportions in which they hold the training
    samples; cuts are rounded down. So a client is tested on the labels it trains on, and a writer on samples of their
    own. Test samples go to nobody if no client holds their value. column: None if all samples are alike. Raises
    ValueError if the test samples lack it.
    """
    if column not in (None, "label", *test.columns):
        text = f"must be a share, such as 0.2, because the test samples have no column {column!r}, by which"
        raise BadInput("data.local_test", f"{text} training ones are divided")
    of_train, of_test = (np.zeros(len(s)) if column is None else s.column(column) for s in (train, test))
    values, place = np.unique(of_train, return_inverse=True)
    clients = np.arange(len(parts))
    held = np.zeros((len(values), len(parts)), dtype=np.int64)
    np.add.at(held, (place[np.concatenate(parts)], np.repeat(clients, [len(rows) for rows in parts])), 1)
    order = np.argsort(of_test, kind="stable")
    starts, ends = (np.searchsorted(of_test[order], values, side=side) for side in ("left", "right"))
    # Integer arithmetic, so that a client without training samples gets none here, and the last cut takes all.
    cuts = np.cumsum(held, axis=1) * (ends - starts)[:, None] // np.maximum(held.sum(axis=1), 1)[:, None]
    rows, owners = [], []
    for start, end, counts in zip(starts, ends, np.diff(cuts, axis=1, prepend=0), strict=True):
        rows.append(generator.permutation(order[start:end])[: counts.sum()])
        owners.append(np.repeat(clients, counts))
    return Holdings.by_owner(np.concatenate(rows), np.concatenate(owners), len(parts))
