"""Public samples: unlabelled samples that everybody has, on which peers compare their predictions."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from raysim.data.dataset import Split
from raysim.data.federation.dirichlet import draw_mix
from raysim.data.sources.subset import rows_by_value
from raysim.parts.errors import BadValue
from raysim.parts.part import Part, Positive, Unit


class Public(Part):
    """Random unlabelled samples that all clients or peers have, in the same order."""

    samples: Annotated[int, Field(ge=0), Unit("samples")] = 0
    """Number of public samples; 0: there are none."""
    split: Literal["train", "test"] = "train"
    """Split that they are drawn from. Clients may hold training samples too; test samples evaluate no model. A server
    with samples in domain may have some of them too."""
    from_all: bool = False
    """Whether they are drawn from all training samples of the data set, also from those that `data.train_samples`
    leaves out, as in the code of CMFD's authors. false: only from those that it leaves."""
    alpha: Positive | None = None
    """Skews their mix of labels: the shares of labels are drawn from Dir(alpha, ..., alpha). null: samples are drawn
    uniformly."""

    def draw(self, split: Split, generator: np.random.Generator) -> np.ndarray:
        """Draws rows of the split, ascending. Raises ValueError if it has too few, or none is left to evaluate on."""
        most = len(split) - (self.split == "test")
        if self.samples > most:
            raise BadValue(
                f"must be at most {most}, for there are {len(split)} {self.split} samples, "
                f"got {self.samples}; lower it",
                "samples",
            )
        if self.alpha is None:
            return np.sort(generator.permutation(len(split))[: self.samples])
        groups = rows_by_value(split.column("label"))
        have = np.array([len(rows) for rows in groups])
        mix = generator.dirichlet(np.full(len(groups), self.alpha))
        wanted = draw_mix(mix, self.samples, have, generator)
        rows = [generator.permutation(rows)[:number] for rows, number in zip(groups, wanted, strict=True)]
        return np.sort(np.concatenate(rows))


NO_PUBLIC = Public()
