"""Samples that clients test their own models on: a share of the samples they hold, or a part of the test set."""

import numpy as np

from raysim.data.dataset import Split
from raysim.data.federation.holdings import Holdings
from raysim.data.sources.subset import held_out_size, pieces
from raysim.parts.errors import BadInput
from raysim.parts.rng import Stream


def hold_out(parts: list[np.ndarray], share: float, seed: int) -> tuple[Holdings, Holdings]:
    """Returns the rows that each client trains on, and a random share of its rows that it tests on instead.

    A row that a client holds several times counts once, so that the client never trains on what it tests on.
    """
    if not share:
        return Holdings.of(parts), Holdings.none(len(parts))
    held, held_out = [], []
    draws = Stream(seed, "local test")
    repeated = np.bincount(np.concatenate(parts)).max(initial=0) > 1  # by one client, or by several
    for client, rows in enumerate(parts):
        own = np.unique(rows) if repeated else rows
        shuffled = draws(client).permutation(own)
        tested, others = np.split(shuffled, [held_out_size(len(own), share)])
        held_out.append(tested)
        held.append(rows[~np.isin(rows, tested)] if repeated else others)
    return Holdings.of(held), Holdings.of(held_out)


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
    rows = Holdings.of(aside)
    return held.without(rows.rows), rows


def divide_alike(
    train: Split, parts: list[np.ndarray], test: Split, column: str | None, generator: np.random.Generator
) -> list[np.ndarray]:
    """Divides the test samples as the training samples are divided. Returns each client's rows, int64, disjoint.

    For each value of the column, clients share the test samples in the proportions in which they hold the training
    samples; cuts are rounded down. So a client is tested on the labels it trains on, and a writer on samples of their
    own. Test samples go to nobody if no client holds their value. column: None if all samples are alike. Raises
    ValueError if the test samples lack it.
    """
    if column not in (None, "label", *test.columns):
        raise BadInput(
            "data.local_test",
            f"must be a share, such as 0.2, because the test samples have no column {column!r}, by "
            "which the training samples are divided",
        )
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
    owner = np.concatenate(owners)
    by_owner = np.concatenate(rows)[np.argsort(owner, kind="stable")]
    return pieces(by_owner, np.bincount(owner, minlength=len(parts)))
