"""Epsilon where it is not known who takes part, by the package dp-accounting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple

LIBRARY = "dp-accounting"


def drawn_alone(probability: float, clients: int) -> float:
    """Returns the probability with which a round draws a given client, and nobody else.

    A round that draws nobody makes no step. So where nobody else is drawn, a step shows that the client was. Otherwise,
    the step shows what sampling leaves of it. So delta grows by this, at most, in each round.
    """
    return probability * (1 - probability) ** (clients - 1)


@contextmanager
def _quiet() -> Iterator[None]:
    """Lets dp-accounting report errors only within the block: it warns of orders that it leaves out."""
    from absl import logging

    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)


class Sampled(NamedTuple):
    """Steps of independent Gaussian noise, each of whose clients, or samples, is drawn with the same probability."""

    accountant: str  # rdp or pld
    probability: float
    delta: float

    @cache  # noqa: B019 - of tuples of numbers
    def epsilon(self, multiplier: float, steps: int) -> float:
        """Returns the epsilon of so many steps. It takes up to some seconds."""
        if not steps:
            return 0.0
        with _quiet():
            accountant = self._new()
            accountant.compose(self._event(multiplier), steps)
            return float(accountant.get_epsilon(self.delta))

    def multiplier(self, epsilon: float, steps: int) -> float:
        """Returns the least multiplier that keeps so many steps to an epsilon, to 1e-4. It takes up to a minute."""
        import dp_accounting

        def made(multiplier: float) -> Any:
            return dp_accounting.SelfComposedDpEvent(self._event(multiplier), steps)

        start = dp_accounting.LowerEndpointAndGuess(0.3, 1.0)
        with _quiet():
            return float(dp_accounting.calibrate_dp_mechanism(self._new, made, epsilon, self.delta, start, tol=1e-4))

    @property
    def facts(self) -> dict[str, str]:
        """What run.json says of it."""
        library = f"{LIBRARY} {version(LIBRARY)}"
        return {"sampling": "poisson", "accountant": self.accountant, "library": library}

    def _new(self) -> Any:
        if self.accountant == "rdp":
            from dp_accounting.rdp import RdpAccountant

            return RdpAccountant()
        from dp_accounting.pld import PLDAccountant

        return PLDAccountant()

    def _event(self, multiplier: float) -> Any:
        import dp_accounting

        gaussian = dp_accounting.GaussianDpEvent(multiplier)
        return gaussian if self.probability == 1 else dp_accounting.PoissonSampledDpEvent(self.probability, gaussian)
