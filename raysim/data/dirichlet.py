"""Label skew drawn from a Dirichlet distribution, over each label's clients or over each client's labels."""

from typing import Annotated

import numpy as np
from pydantic import Field

from raysim.data.dataset import Split
from raysim.data.partition import Partitioner, deal, need, rows_by_value
from raysim.part import Count, Positive


class Dirichlet(Partitioner):
    """Each label's samples are shared out by a draw from Dir(alpha): skews labels and sizes.

    Yurochkin et al., Bayesian Nonparametric Federated Learning of Neural Networks, ICML 2019. As there, a client that
    holds the mean number of samples or more gets nothing of the labels that come after, and everything is drawn again
    until every client holds `min_size` samples.
    """

    name: str = "dirichlet"
    alpha: Positive
    """Small: few clients share a label; large: all clients alike."""
    over: str = "label"
    """`label`, or the name of a column, such as a finer label."""
    cap: bool = True
    """Whether a client with the mean number of samples gets nothing of the labels that come after."""
    min_size: Annotated[int, Field(ge=0)] = 10
    """Samples that every client must hold, or everything is drawn again."""
    max_retries: Count = 100
    """Draws until it is an error."""

    @property
    def column(self) -> str:
        return self.over

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        groups = rows_by_value(split.column(self.over))
        totals = [len(rows) for rows in groups]
        best = 0
        for _ in range(self.max_retries):
            counts = self._draw(totals, clients, generator)
            smallest = int(counts.sum(axis=0).min())
            if smallest >= self.min_size:
                return deal(groups, counts, generator)
            best = max(best, smallest)
        raise ValueError(
            f"partition dirichlet: every client must get at least `min_size` {self.min_size} samples, got {best} at "
            f"best for the smallest of {clients} clients in {self.max_retries} draws with alpha {self.alpha!r} over "
            f"{len(groups)} values of {self.over!r}; lower `min_size` or `clients`, raise `alpha` or `max_retries`, "
            "or draw `over` a finer column"
        )

    def _draw(self, totals: list[int], clients: int, generator: np.random.Generator) -> np.ndarray:
        limit = sum(totals) / clients if self.cap else np.inf
        counts = np.zeros((len(totals), clients), dtype=np.int64)
        for k, total in enumerate(totals):
            shares = np.zeros(clients)
            while not shares.any():  # all shares but those of full clients may have underflowed to zero
                shares = open_shares(generator.dirichlet(np.full(clients, self.alpha)), counts.sum(axis=0), limit)
            counts[k] = cut(total, shares)
        return counts


def open_shares(p: np.ndarray, sizes: np.ndarray, limit: float) -> np.ndarray:
    """Shares p (clients,), summing to one again after those of clients with `limit` samples or more became zero.

    All zero where nothing is left.
    """
    p = np.where(sizes < limit, p, 0.0)
    total = p.sum()
    return p / total if total > 0 else p


def cut(samples: int, shares: np.ndarray) -> np.ndarray:
    """How many of the samples each client gets, int64: cut where the running sum of shares falls, rounded down.

    The last client takes what is left.
    """
    ends = np.floor(np.cumsum(shares) * samples).astype(np.int64)
    ends[-1] = samples
    return np.diff(ends, prepend=0)


class DirichletClients(Partitioner):
    """Each client draws its own mix of labels from Dir(alpha × their frequencies): skews labels, not sizes.

    Hsu, Qi and Brown, Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification,
    2019. Samples are drawn without replacement, client after client, and all are given out: where a label has run out,
    a client falls back to its other labels, so that the last clients' mixes are less their own.
    """

    name: str = "dirichlet_clients"
    alpha: Positive
    """Small: few labels a client; large: all clients alike."""

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        need(self.name, len(split), clients)
        groups = rows_by_value(split.column("label"))
        left = np.array([len(rows) for rows in groups])
        mixes = generator.dirichlet(self.alpha * left / left.sum(), size=clients)
        counts = np.zeros((len(groups), clients), dtype=np.int64)
        for client, mix in enumerate(mixes):
            size = len(split) // clients + (client < len(split) % clients)
            counts[:, client] = draw_mix(mix, size, left, generator)
            left = left - counts[:, client]
        return deal(groups, counts, generator)


def draw_mix(mix: np.ndarray, size: int, left: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """How many samples of each label, (labels,), a client with this mix draws when `left` samples of each are left."""
    drawn = np.zeros_like(left)
    while drawn.sum() < size:  # every turn but the last one empties a label
        remaining = left - drawn
        weights = np.where(remaining > 0, mix, 0.0)
        if weights.sum() == 0:
            weights = remaining
        wanted = generator.multinomial(size - drawn.sum(), weights / weights.sum())
        drawn += np.minimum(wanted, remaining)
    return drawn
