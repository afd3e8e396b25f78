"""A linear regression whose rows come from three distributions.

It is from Zhou and Li, Federated Learning via Inexact ADMM, IEEE Transactions on Pattern Analysis and Machine
Intelligence, 2023. With 10,000 samples of 1,000 features it is also the first example of FedADMM-InSa.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split
from raysim.data.sources.source import Source
from raysim.parts.part import Count, Samples
from raysim.parts.rng import generator
from raysim.terms import Inputs


class LinearRegression(Source):
    """Linear least squares on random rows: a third Student-t, a third uniform, a third normal.

    Client i minimises 1/(2 d_i) · Σ_j (⟨a_j, u⟩ − b_j)² over its d_i samples. `local.weight_decay: c` adds a ridge term
    c/2 · |u|², which the losses in tables leave out. There is no test set: all training samples evaluate models.
    """

    name: str = "linear_regression"
    samples: Samples = 10_000
    """Number of samples, of all clients together."""
    features: Count = 1_000
    """Number of features of a sample."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of the samples. The scenario's seed does not change them, so runs of several seeds solve one problem."""

    holds: ClassVar[tuple[Inputs, ...]] = ("features",)
    has_test_set: ClassVar[bool] = False
    usual: ClassVar[Mapping[str, str]] = {"partition": "iid"}

    @property
    def classes(self) -> int:
        """Zero, because there are no labels."""
        return 0

    @property
    def divisible_by(self) -> tuple[str, ...]:
        return ()

    def load(self) -> Dataset:
        """Draws the samples. x: a, float32 (samples, features). y: b, float32 (samples,)."""
        draw = generator(self.seed, "linear regression")
        rows = np.empty((self.samples, self.features + 1), dtype=np.float32)  # a row is [a, b]
        third = -(-self.samples // 3)
        first, second, rest = rows[:third], rows[third : 2 * third], rows[2 * third :]
        first[:] = draw.standard_t(5, size=first.shape)
        second[:] = draw.uniform(-5, 5, size=second.shape)
        rest[:] = draw.standard_normal(size=rest.shape)
        split = Split(np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy())
        return Dataset(train=split, test=split, num_classes=1, loss="squared_error")
