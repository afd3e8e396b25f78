"""Label skew drawn from a Dirichlet distribution, over each label's clients or over each client's labels."""

from typing import Annotated

import numpy as np
from pydantic import Field

from raysim.data.dataset import Split
from raysim.data.federation.partition import Partitioner, deal, need
from raysim.data.federation.sizes import SIZES, EqualSizes, Sizes, cut
from raysim.data.sources.subset import rows_by_value
from raysim.parts.errors import BadValue
from raysim.parts.part import Count, OneOf, Positive, Unit


class Dirichlet(Partitioner):
    """Divides each label's samples among clients by a draw from Dir(alpha), which skews labels and sizes.

    Yurochkin et al., Bayesian Nonparametric Federated Learning of Neural Networks, ICML 2019. As there, a client that
    already holds the mean number of samples gets nothing of further labels, and everything is drawn again until every
    client holds `min_size` samples.
    """

    name: str = "dirichlet"
    alpha: Positive
    """Concentration. Small: few clients share a label; large: all clients have the same mix of labels."""
    over: str = "label"
    """What is divided by: `label`, or the name of a column, such as a finer label."""
    cap: bool = True
    """Whether a client that already holds the mean number of samples gets nothing of further labels."""
    min_size: Annotated[int, Field(ge=0), Unit("samples")] = 10
    """Number of samples that every client must hold; if one holds fewer, everything is drawn again."""
    max_retries: Count = 100
    """Number of draws after which it is an error that a client holds too few samples."""

    @property
    def column(self) -> str:
        return self.over

    @property
    def may_be_empty(self) -> bool:
        return self.min_size == 0

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
        raise BadValue(
            f"every client must get at least `min_size` {self.min_size} samples, got {best} at "
            f"best for the smallest of {clients} clients in {self.max_retries} draws with alpha {self.alpha!r} over "
            f"{len(groups)} values of {self.over!r}; lower `min_size` or `clients`, raise `alpha` or `max_retries`, "
            "or draw `over` a finer column"
        )

    def _draw(self, totals: list[int], clients: int, generator: np.random.Generator) -> np.ndarray:
        limit = sum(totals) / clients if self.cap else np.inf
        counts = np.zeros((len(totals), clients), dtype=np.int64)
        for k, total in enumerate(totals):
            shares = np.zeros(clients)
            while not shares.any():  # again if all shares but those of full clients underflowed to zero
                shares = open_shares(generator.dirichlet(np.full(clients, self.alpha)), counts.sum(axis=0), limit)
            counts[k] = cut(total, shares)
        return counts


def open_shares(p: np.ndarray, sizes: np.ndarray, limit: float) -> np.ndarray:
    """Returns shares p (clients,) with zero for clients that hold `limit` samples or more, and the rest summing to 1.

    All are zero if no other client has a share.
    """
    p = np.where(sizes < limit, p, 0.0)
    total = p.sum()
    return p / total if total > 0 else p


class DirichletClients(Partitioner):
    """Draws each client's mix of labels from Dir(alpha × label frequencies); sizes are equal, or chosen apart.

    Hsu, Qi and Brown, Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification,
    2019. Samples are drawn without replacement, client after client, until all are given out. Where a label has run
    out, a client takes its other labels instead, so the last clients' mixes differ more from what was drawn for them.
    """

    name: str = "dirichlet_clients"
    alpha: Positive
    """Concentration. Small: each client has few labels; large: all clients have the same mix of labels."""
    sizes: Annotated[Sizes, OneOf(SIZES, "raysim.sizes")] = EqualSizes()
    """How many samples each client gets. Others than `equal` skew labels and sizes."""

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        need(self.name, len(split), clients)
        groups = rows_by_value(split.column("label"))
        left = np.array([len(rows) for rows in groups])
        mixes = generator.dirichlet(self.alpha * left / left.sum(), size=clients)
        sizes = self.sizes.draw(len(split), clients, generator)
        counts = np.zeros((len(groups), clients), dtype=np.int64)
        for client, (mix, size) in enumerate(zip(mixes, sizes.tolist(), strict=True)):
            counts[:, client] = draw_mix(mix, size, left, generator)
            left = left - counts[:, client]
        return deal(groups, counts, generator)


def draw_mix(mix: np.ndarray, size: int, left: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Returns how many samples of each label, (labels,), a client with this mix draws from the `left` ones."""
    drawn = np.zeros_like(left)
    while drawn.sum() < size:  # every turn but the last one empties a label
        remaining = left - drawn
        weights = np.where(remaining > 0, mix, 0.0)
        if weights.sum() == 0:
            weights = remaining
        wanted = generator.multinomial(size - drawn.sum(), weights / weights.sum())
        drawn += np.minimum(wanted, remaining)
    return drawn
