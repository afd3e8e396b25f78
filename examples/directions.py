"""FedAvg that tells how far each step of the server agrees with the steps before it.

Zhu et al., Guided model merging for hybrid data learning, 2025, figure 2 (b): the cosine between the true updates of
any two rounds, which are the means of all clients' updates. Let all clients take part, so that a step is the true one.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import PositiveInt
from torch import cosine_similarity

from raysim.algorithms import Arrival, FedAvg, Population, Record


class Directions(FedAvg):
    """FedAvg with a column `cosine_<k>` in the table `steps`: the cosine between a step and the k-th step before it."""

    name: str = "directions:Directions"
    kept: PositiveInt = 50
    """How many steps back a step is compared. As many vectors of all parameters are kept."""

    def init(self, model: Any, population: Population) -> Record:
        return {
            **self.starting(model.w),
            "before": model.w.new_zeros(self.kept, len(model.w)),
            "steps": model.w.new_zeros(()),
        }

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        stepped = super().step(state, arrivals, updates, task)
        moved = stepped["w"] - state["w"]
        cosines = cosine_similarity(state["before"], moved)
        there = min(int(state["steps"]), self.kept)
        task.log(**{f"cosine_{back + 1}": cosines[back] for back in range(there)})
        before = state["before"].roll(1, 0)  # the newest first
        before[0] = moved
        return {**stepped, "before": before, "steps": state["steps"] + 1}
