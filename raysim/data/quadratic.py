"""Clients with quadratic losses, so that an algorithm can be followed with pencil and paper."""

from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from raysim.data.dataset import Dataset, Split
from raysim.data.partition import rows_by_value
from raysim.part import Count, NonNegative, Part

Vector = Annotated[tuple[float, ...], Field(min_length=1)] | float  # a bare number is a vector of length 1


def _row(vector: tuple[float, ...] | float) -> tuple[float, ...]:
    return vector if isinstance(vector, tuple) else (vector,)


class Quadratic(Part):
    """Client i minimises h_i/2 · |x − a_i|² + ⟨s_i, x⟩ over a vector x.

    Every client holds `samples` identical samples, of the kind [a_i, s_i, h_i], and all clients' samples are the test
    set: its mean loss is the average of the clients' functions, weighted by samples.
    """

    name: str = "quadratic"
    centers: Annotated[tuple[Vector, ...], Field(min_length=1)]
    """a_i, one per client."""
    curvatures: tuple[NonNegative, ...] | None = None
    """h_i; by default 1."""
    slopes: tuple[Vector, ...] | None = None
    """s_i; by default 0."""
    samples: tuple[Count, ...] | None = None
    """Of each client; by default one."""

    local_test: ClassVar[float] = 0.0
    unseen: ClassVar[float] = 0.0
    classes: ClassVar[int | None] = 0

    @model_validator(mode="after")
    def _agree(self) -> Self:
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
    def clients(self) -> int:
        """How many clients there are."""
        return len(self.centers)

    @property
    def participants(self) -> int:
        """How many of them may take part in training: all."""
        return self.clients

    @property
    def size(self) -> int:
        """Length of the vector x."""
        return len(_row(self.centers[0]))

    def load(self) -> Dataset:
        """x: float32 (n, 2 · size + 1), of rows [a_i, s_i, h_i]. y and the column `client`: i."""
        centers = np.array([_row(center) for center in self.centers])
        slopes = np.array([_row(slope) for slope in self.slopes]) if self.slopes else np.zeros_like(centers)
        curvatures = np.array(self.curvatures) if self.curvatures else np.ones(self.clients)
        functions = np.column_stack([centers, slopes, curvatures]).astype(np.float32)
        client = np.repeat(np.arange(self.clients), self.samples or 1)
        split = Split(functions[client], client, {"client": client})
        return Dataset(train=split, test=split, num_classes=0, loss="quadratic")

    def divide(self, train: Split, generator: np.random.Generator) -> list[np.ndarray]:
        """The rows of each client, int64."""
        del generator  # who holds what is given
        return rows_by_value(train.columns["client"])

    def problems(self) -> list[str]:
        """Nothing that the fields' own checks leave over."""
        return []
