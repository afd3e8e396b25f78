"""Partitioners that skew labels: by draws from a Dirichlet distribution, or by dealing out blocks of sorted samples."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from raysim.data.dataset import Split, rows_by_value
from raysim.data.federation.partition import SIZES, EqualSizes, Partitioner, Sizes, cut, deal, need
from raysim.parts.errors import BadValue
from raysim.parts.part import Count, OneOf, Positive, Samples, Unit


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
    sizes: Annotated[Sizes, OneOf(SIZES)] = EqualSizes()
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


class Shards(Partitioner):
    """Sorts the samples by label, cuts them in equal shards and deals a few random shards to each client.

    McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, AISTATS 2017. A shard may
    lie across two labels.
    """

    name: str = "shards"
    per_client: Count = 2
    """Number of shards of each client."""

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        number = clients * self.per_client
        need(self.name, len(split), number)
        shards = np.array_split(np.argsort(split.column("label"), kind="stable"), number)
        hands = generator.permutation(number).reshape(clients, self.per_client)
        return [np.concatenate([shards[shard] for shard in hand]) for hand in hands]


class Classes(Partitioner):
    """Gives each client a fixed number of blocks, each with samples of one label."""

    name: str = "classes"
    per_client: Count
    """Number of blocks of each client; with `cyclic`, each has another label."""
    assignment: Literal["cyclic", "collins"] = "cyclic"
    """How labels are assigned to blocks. cyclic: client i gets the labels i, i + 1, ... modulo their number, so that
    neighbours on a ring share labels. collins: all labels, equally often, are shuffled and dealt, so that a client may
    get two blocks of one label (Collins et al., Exploiting Shared Representations for Personalized Federated Learning,
    ICML 2021)."""
    samples_per_class: Samples | None = None
    """Number of samples of a block. null: the samples of a label are all given out, in blocks as `sizes` says."""
    sizes: Annotated[Sizes, OneOf(SIZES)] = EqualSizes()
    """How the samples of a label are shared by the clients that hold it: equally, or in proportion to sizes that are
    drawn for all clients, so that labels and sizes are skewed."""

    def problems(self, clients: int, num_classes: int | None) -> list[str]:
        if self.samples_per_class is not None and not isinstance(self.sizes, EqualSizes):
            return ["partition classes: `sizes` must be equal where `samples_per_class` is given; leave one out"]
        if num_classes is None:
            return []
        if self.assignment == "cyclic" and self.per_client > num_classes:
            return [
                f"partition classes: `per_client` must be at most the number of labels, {num_classes}, "
                f"got {self.per_client}; lower it"
            ]
        if self.assignment == "collins" and self.per_client * clients % num_classes:
            return [
                f"partition classes: `per_client` * `clients` must be a multiple of the number of labels, "
                f"{num_classes}, got {self.per_client} * {clients}; change one of them, or take `assignment: cyclic`"
            ]
        return []

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        groups = rows_by_value(split.column("label"))
        for problem in self.problems(clients, len(groups)):
            raise BadValue(problem.removeprefix("partition classes: "))
        if self.assignment == "cyclic":
            labels = (np.arange(clients)[:, None] + np.arange(self.per_client)) % len(groups)
        else:
            slots = np.arange(clients * self.per_client) % len(groups)
            labels = generator.permutation(slots).reshape(clients, self.per_client)
        totals = np.array([len(rows) for rows in groups])
        if isinstance(self.sizes, EqualSizes):
            return deal(groups, block_counts(labels, totals, self.samples_per_class), generator)
        return deal(groups, weighted_counts(labels, totals, self.sizes.shares(clients, generator)), generator)


def block_counts(labels: np.ndarray, totals: np.ndarray, size: int | None) -> np.ndarray:
    """Returns how many samples of each label each client gets, (labels, clients).

    labels: the label of each block, (clients, per_client). totals: number of samples of each label. size: number of
    samples of a block; None cuts a label's samples evenly, with one more for the first blocks if they do not divide.
    Raises ValueError if a label has too few samples.
    """
    clients, per_client = labels.shape
    counts = np.zeros((len(totals), clients), dtype=np.int64)
    for label, total in enumerate(totals):
        takers = np.flatnonzero(labels.ravel() == label) // per_client
        if len(takers) * (size or 1) > total:
            text = f"label number {label} must have {size or 1} samples for each of {len(takers)}"
            raise BadValue(f"{text} blocks, got {total} in all; lower `clients`, `per_client` or `samples_per_class`")
        blocks = [size or len(part) for part in np.array_split(np.arange(total), max(len(takers), 1))]
        np.add.at(counts[label], takers, blocks[: len(takers)])
    return counts


def weighted_counts(labels: np.ndarray, totals: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Returns how many samples of each label each client gets, (labels, clients).

    That is one for each block and, of the label's other samples, a share in proportion to the client's weight. labels,
    totals: as for `block_counts`. weights: (clients,). Raises ValueError if a label has too few samples.
    """
    counts = block_counts(labels, totals, 1)
    for label, total in enumerate(totals):
        holders = np.flatnonzero(counts[label])
        shares = counts[label, holders] * weights[holders]  # a client may have two blocks of a label
        if not shares.any():  # the weights of all of them underflowed to 0
            shares = counts[label, holders]
        if len(holders):
            counts[label, holders] += cut(total - counts[label].sum(), shares / shares.sum())
    return counts
