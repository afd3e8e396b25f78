"""Sizes of clients: how many samples each of them gets, for partitions that let this be chosen."""

from abc import abstractmethod

import numpy as np

from raysim.parts.part import NonNegative, Part, Positive


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
