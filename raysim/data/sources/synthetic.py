"""Data that are drawn, or given in the scenario: a linear regression, and clients with quadratic losses."""

from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from raysim.data.dataset import Dataset, Split
from raysim.data.federation.partition import Iid
from raysim.data.sources.source import Partition, Source
from raysim.parts.part import Count, NonNegative, Samples
from raysim.parts.rng import generator
from raysim.terms import Inputs

Vector = Annotated[tuple[float, ...], Field(min_length=1)] | float  # a bare number is a vector of length 1


def _row(vector: tuple[float, ...] | float) -> tuple[float, ...]:
    return vector if isinstance(vector, tuple) else (vector,)


class Quadratic(Source):
    """Client i minimises h_i/2 · |x − a_i|² + ⟨s_i, x⟩ over a vector x: an algorithm can be followed with a pencil.

    A client's samples are all identical: [a_i, s_i, h_i]. The samples of all clients are the test set, so its mean loss
    is the average of the clients' functions, weighted by their numbers of samples.
    """

    name: str = "quadratic"
    clients: Annotated[int, Field(ge=0)] = 0
    """Number of clients: that of the centers. It need not be given."""
    centers: Annotated[tuple[Vector, ...], Field(min_length=1, examples=[[[1.0, 2.0], [3.0, 4.0]]])]
    """The vectors a_i, one per client; a bare number is a vector of length 1."""
    curvatures: tuple[NonNegative, ...] | None = None
    """The curvatures h_i, one per client. null: all are 1."""
    slopes: tuple[Vector, ...] | None = None
    """The vectors s_i, one per client; a bare number is a vector of length 1. null: all are 0."""
    samples: tuple[Count, ...] | None = None
    """Number of samples of each client, one number per client. null: one sample each."""

    holds: ClassVar[tuple[Inputs, ...]] = ("functions",)
    classes: ClassVar[int] = 0  # there are no labels
    has_test_set: ClassVar[bool] = False
    has_clients: ClassVar[bool] = True

    @model_validator(mode="before")
    @classmethod
    def _clients(cls, given: Any) -> Any:
        """Makes each center a client."""
        if not isinstance(given, dict) or not isinstance(given.get("centers"), list | tuple):
            return given
        return {"clients": len(given["centers"]), "partition": {"name": "natural", "by": "client"}, **given}

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.clients != len(self.centers):
            text = f"must be left out: each of {len(self.centers)} centers is one, got {self.clients}"
            raise ValueError(f"`clients` {text}")
        for key in ("curvatures", "slopes", "samples"):
            values = getattr(self, key)
            if values is not None and len(values) != self.clients:
                raise ValueError(f"`{key}` must have an entry for each of {self.clients} centers, got {len(values)}")
        for key, vectors in (("centers", self.centers), ("slopes", self.slopes or ())):
            lengths = [len(_row(vector)) for vector in vectors]
            if set(lengths) - {self.size}:
                raise ValueError(f"`{key}` must all be as long as the first center, {self.size}, got lengths {lengths}")
        return self

    @property
    def size(self) -> int:
        """Length of the vector x."""
        return len(_row(self.centers[0]))

    def load(self) -> Dataset:
        """Makes the samples. x: rows [a_i, s_i, h_i], float32 (n, 2 · size + 1). y and the column `client`: i."""
        centers = np.array([_row(center) for center in self.centers])
        slopes = np.array([_row(slope) for slope in self.slopes]) if self.slopes else np.zeros_like(centers)
        curvatures = np.array(self.curvatures) if self.curvatures else np.ones(self.clients)
        functions = np.column_stack([centers, slopes, curvatures]).astype(np.float32)
        client = np.repeat(np.arange(self.clients), self.samples or 1)
        split = Split(functions[client], client, {"client": client})
        return Dataset(train=split, test=split, num_classes=0, loss="quadratic")


class LinearRegression(Source):
    """Linear least squares on random rows: a third Student-t, a third uniform, a third normal.

    Zhou and Li, Federated Learning via Inexact ADMM, IEEE Transactions on Pattern Analysis and Machine Intelligence,
    2023. With 10,000 samples of 1,000 features it is also the first example of FedADMM-InSa.

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
    partition: Partition = Iid()
    """How the training samples are divided among the clients; without labels and columns, iid is the usual one."""

    holds: ClassVar[tuple[Inputs, ...]] = ("features",)
    divisible_by: ClassVar[tuple[str, ...]] = ()
    classes: ClassVar[int] = 0  # there are no labels
    has_test_set: ClassVar[bool] = False

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
