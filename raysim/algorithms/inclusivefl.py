"""Clients with the first layers of the model, the last of which also follow the layers above them (InclusiveFL).

Liu, Wu, Wu, Wang, Lyu, Chen, Xie, No one left behind: Inclusive federated learning over heterogeneous devices, KDD
2022. A client of level p trains the first ceil(p n) of n parts of the model, with one exit, that of the last of them.
Each parameter becomes the mean over the clients that hold it, by samples. The last block of layers in a small model
should do what further ones do in large models: it moves along (1 - b) times its own mean difference, and b times the
mean difference of the blocks above it in the next larger model (momentum knowledge distillation).

Differences from the paper: differences over local training stand for gradients, and the server adds them itself, so it
can step by a buffer, too, which is new. The last block of a small model is shared with larger ones, where the authors'
code has an option to leave it to each size. Blocks of other shapes than the last one give it nothing, as in networks
whose channels grow; the paper's are those of a transformer, which are alike. An exit is a dense layer on the mean over
pixels or tokens.
"""

from collections.abc import Callable
from itertools import chain, pairwise
from typing import ClassVar

from raysim.algorithms.signatures import Arrivals, Correction, Direction, ServerTask, Task, Tensor, Weights
from raysim.algorithms.sliced import Deep
from raysim.parts.part import Fraction
from raysim.terms import Population, Record


class InclusiveFL(Deep):
    """Models of several depths with one exit; the last layers of small ones follow large ones (Liu et al. 2022)."""

    trains_exits: ClassVar[bool] = False

    name: str = "inclusivefl"
    momentum: Fraction = 0.2
    """How much the last block of a small model follows those above it in the next larger one (b). 0: not at all."""

    def local(
        self, task: Task, message: Record, state: Record
    ) -> tuple[Callable[..., Tensor] | None, Correction | None]:
        return None, None

    def weigh(self, arrivals: Arrivals, population: Population) -> Weights:
        weights, levels = self.discounted(arrivals, self.weights), _levels(arrivals)
        if not self.momentum or len(levels) < 2:
            return weights
        of = [arrival.level for arrival in arrivals]
        return {f"{one:g}": [w * (level == one) for w, level in zip(weights, of, strict=True)] for one in levels}

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        if updates and "delta" not in updates:  # there is a sum for each level
            updates = self._joined(arrivals, updates, task)
        return super().direction(state, arrivals, updates, task)

    def _joined(self, arrivals: Arrivals, updates: Record, task: ServerTask) -> Record:
        """Returns the sums of all levels together, after the last blocks of small models have followed larger ones."""
        shares, levels, parts = self._shares(arrivals), _levels(arrivals), task.blocks()
        weight = {level: sum(w for w, a in zip(shares, arrivals, strict=True) if a.level == level) for level in levels}
        blocks = {level: [*chain(*parts[: self.depth(level).first])] for level in levels}
        joined: Record = {}
        for key, entry in updates.items():
            name = key.rpartition(".")[2]
            joined[name] = joined[name] + entry if name in joined else entry.clone()
        for large, small in pairwise(levels):
            last, above = blocks[small][-1], blocks[large][len(blocks[small]) :]
            alike = [updates[f"{large:g}.delta"][one.span] for one in above if one.shapes == last.shapes]
            if alike:
                mean = sum(alike[1:], alike[0]) / len(alike) * (weight[small] / weight[large])
                joined["delta"][last.span] += self.momentum * (mean - updates[f"{small:g}.delta"][last.span])
        return joined


def _levels(arrivals: Arrivals) -> list[float]:
    """Returns the levels of some updates, the largest first."""
    return sorted({arrival.level for arrival in arrivals}, reverse=True)
