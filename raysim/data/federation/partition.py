"""Partitioners decide which client holds which samples: their base, the two plainest of them, and sizes of clients."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from raysim.data.dataset import Split, pieces, rows_by_value
from raysim.parts.errors import BadInput, BadValue
from raysim.parts.part import NonNegative, OneOf, Part, Positive


class Sizes(Part):
    """How the samples are spread over the clients in number. A subclass adds its `name`."""

    name: str

    @abstractmethod
    def shares(self, clients: int, generator: np.random.Generator) -> np.ndarray:
        """Returns each client's share of the samples, (clients,), at least 0, of any sum but 0."""

    def draw(self, samples: int, clients: int, generator: np.random.Generator) -> np.ndarray:
        """Returns each client's number of samples, int64 (clients,): one for each, and its share of all others."""
        shares = self.shares(clients, generator)
        return 1 + cut(samples - clients, shares / shares.sum())


def cut(samples: int, shares: np.ndarray) -> np.ndarray:
    """Returns how many of the samples each client gets, int64 (clients,).

    The samples are cut at the running sums of the shares, rounded down; the last client takes what is left.
    """
    ends = np.floor(np.cumsum(shares) * samples).astype(np.int64)
    ends[-1] = samples
    return np.diff(ends, prepend=0)


class EqualSizes(Sizes):
    """All clients get the same number of samples; where they do not divide evenly, some get one more."""

    name: str = "equal"

    def shares(self, clients: int, generator: np.random.Generator) -> np.ndarray:
        return np.ones(clients)

    def draw(self, samples: int, clients: int, generator: np.random.Generator) -> np.ndarray:
        return samples // clients + (np.arange(clients) < samples % clients)


class LogNormalSizes(Sizes):
    """Draws sizes from a log-normal distribution.

    Acar, Zhao, Matas Navarro, Mattina, Whatmough and Saligrama, Federated Learning Based on Dynamic Regularization,
    ICLR 2021, appendix A.1 (unbalanced data); FedLab and FLGo have it too.
    """

    name: str = "log_normal"
    sigma: NonNegative
    """Standard deviation of the logarithm of the sizes; 0: all are equal."""

    def shares(self, clients: int, generator: np.random.Generator) -> np.ndarray:
        return np.exp(self.sigma * generator.standard_normal(clients))


class PowerLawSizes(Sizes):
    """Sizes follow a power law: the client of rank r gets a share that falls like r^-exponent; ranks are drawn.

    Li, Sahu, Zaheer, Sanjabi, Talwalkar and Smith, Federated Optimization in Heterogeneous Networks, MLSys 2020,
    section 5.1 (the number of samples among devices follows a power law).
    """

    name: str = "power_law"
    exponent: Positive
    """How unequal the sizes are."""

    def shares(self, clients: int, generator: np.random.Generator) -> np.ndarray:
        return (1.0 + generator.permutation(clients)) ** -self.exponent


class DirichletSizes(Sizes):
    """Draws the clients' shares of all samples from Dir(alpha).

    Li, Diao, Chen and He, Federated Learning on Non-IID Data Silos: An Experimental Study, ICDE 2022, section IV
    (quantity skew).
    """

    name: str = "dirichlet"
    alpha: Positive
    """Concentration. Small: few clients have nearly all samples; large: all have about as many."""

    def shares(self, clients: int, generator: np.random.Generator) -> np.ndarray:
        drawn: np.ndarray = generator.dirichlet(np.full(clients, self.alpha))
        return drawn


SIZES: tuple[type[Sizes], ...] = (EqualSizes, LogNormalSizes, PowerLawSizes, DirichletSizes)


class Partitioner(Part):
    """Divides the training samples among the clients. A subclass adds its `name`."""

    name: str

    @abstractmethod
    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        """Returns the rows of each client, int64, disjoint. Raises ValueError if the samples cannot be divided so."""

    @property
    def column(self) -> str | None:
        """What samples are divided by: `label`, a column's name, or None if by chance alone."""
        return "label"

    @property
    def may_overlap(self) -> bool:
        """Whether a sample may be held by several clients, or several times by one."""
        return False

    @property
    def may_be_empty(self) -> bool:
        """Whether a client may get no samples. It then never takes part."""
        return False

    def wrong_with(self, parts: Any, samples: int, clients: int) -> str | None:
        """Returns what is wrong with what `split` returned for so many samples and clients; None if nothing is."""
        if not isinstance(parts, Sequence) or len(parts) != clients:
            got = len(parts) if isinstance(parts, Sequence) else type(parts).__name__
            return f"must return a list with the rows of each of {clients} clients, got {got!r}"
        for client, part in enumerate(parts):
            if not isinstance(part, np.ndarray) or part.ndim != 1 or part.dtype != np.int64:
                got = f"{part.dtype} of shape {part.shape}" if isinstance(part, np.ndarray) else type(part).__name__
                return f"rows must be arrays (n,) of int64, got {got} for client {client}"
        sizes = np.array([len(part) for part in parts])
        if not self.may_be_empty and not sizes.all():
            return f"client {sizes.argmin()} must get samples, got none; give it some, or raise ValueError"
        rows = np.concatenate(parts)
        if (outside := (rows < 0) | (rows >= samples)).any():
            place = outside.argmax()
            holder = np.searchsorted(sizes.cumsum(), place, side="right")
            return f"rows must be 0 to {samples - 1}, got {rows[place]} for client {holder}"
        if not self.may_overlap and (twice := np.flatnonzero(np.bincount(rows) > 1)).size:
            return f"a row must go to one client at most, got {twice[:3].tolist()} more than once"
        return None

    def problems(self, clients: int, num_classes: int | None) -> list[str]:
        """Lists what is wrong with the settings, as far as can be told without data. num_classes: None if unknown."""
        return []


class Iid(Partitioner):
    """Shuffles the samples and cuts them in parts: every client has about the same mix of labels."""

    column: ClassVar[None] = None

    name: str = "iid"
    sizes: Annotated[Sizes, OneOf(SIZES)] = EqualSizes()
    """How many samples each client gets."""

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        need(self.name, len(split), clients)
        sizes = self.sizes.draw(len(split), clients, generator)
        return pieces(generator.permutation(len(split)), sizes)


class Natural(Partitioner):
    """Makes each distinct value of a column a client, such as each writer or speaker."""

    name: str = "natural"
    by: str = "user"
    """Name of the column."""
    shuffle: bool = False
    """Which values become clients if there are more values than clients. false: the first ones in sorted order. true:
    random ones."""

    @property
    def column(self) -> str:
        return self.by

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        groups = rows_by_value(split.column(self.by))
        if len(groups) < clients:
            raise BadInput(
                "data.clients",
                f"must be at most the number of distinct values of {self.by!r}, "
                f"{len(groups)}, got {clients}; lower `clients`",
            )
        chosen = generator.permutation(len(groups)) if self.shuffle else np.arange(len(groups))
        return [groups[group] for group in chosen[:clients]]


def need(name: str, samples: int, parts: int) -> None:
    """Raises ValueError unless there is a sample for every part."""
    if samples < parts:
        text = f"{name} needs at least one training sample for each of {parts} parts, got {samples}"
        raise BadValue(f"{text}; lower `clients`")


def deal(groups: list[np.ndarray], counts: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    """Gives client j `counts[k, j]` random rows of group k, none of them twice. counts: (groups, clients)."""
    dealt = []
    for rows, sizes in zip(groups, counts, strict=True):
        dealt.append(pieces(generator.permutation(rows), sizes))
    return [np.concatenate(parts) for parts in zip(*dealt, strict=True)]
