"""Clients with quadratic losses, so that an algorithm can be followed with pencil and paper."""

from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from raysim.data.dataset import Dataset, Split
from raysim.data.sources.source import Source
from raysim.data.sources.subset import rows_by_value
from raysim.parts.part import Count, NonNegative
from raysim.terms import Inputs

Vector = Annotated[tuple[float, ...], Field(min_length=1)] | float  # a bare number is a vector of length 1


def _row(vector: tuple[float, ...] | float) -> tuple[float, ...]:
    return vector if isinstance(vector, tuple) else (vector,)


class Quadratic(Source):
    """Client i minimises h_i/2 · |x − a_i|² + ⟨s_i, x⟩ over a vector x.

    A client's samples are all identical: [a_i, s_i, h_i]. The samples of all clients are the test set, so its mean loss
    is the average of the clients' functions, weighted by their numbers of samples.
    """

    name: str = "quadratic"
    centers: Annotated[tuple[Vector, ...], Field(min_length=1, examples=[[[1.0, 2.0], [3.0, 4.0]]])]
    """The vectors a_i, one per client; a bare number is a vector of length 1."""
    curvatures: tuple[NonNegative, ...] | None = None
    """The curvatures h_i, one per client. null: all are 1."""
    slopes: tuple[Vector, ...] | None = None
    """The vectors s_i, one per client; a bare number is a vector of length 1. null: all are 0."""
    samples: tuple[Count, ...] | None = None
    """Number of samples of each client, one number per client. null: one sample each."""

    holds: ClassVar[tuple[Inputs, ...]] = ("functions",)
    has_test_set: ClassVar[bool] = False
    local_test: ClassVar[float] = 0.0
    validation: ClassVar[float] = 0.0
    unseen: ClassVar[float] = 0.0
    label_noise: ClassVar[float] = 0.0
    skew: ClassVar[None] = None

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
    def classes(self) -> int:
        """Zero, because there are no labels."""
        return 0

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.centers)

    @property
    def participants(self) -> int:
        """Number of clients that may take part in training: all of them."""
        return self.clients

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

    def divide(self, train: Split, generator: np.random.Generator) -> list[np.ndarray]:
        """Returns the rows of each client, int64."""
        return rows_by_value(train.columns["client"])

    def division_problems(self) -> list[str]:
        """Returns nothing: the checks of the fields find every problem."""
        return []
