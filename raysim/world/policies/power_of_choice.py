"""Clients with the largest losses among a few that are drawn."""

from collections.abc import Iterator
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raysim.parts.part import Clients
from raysim.world.policies.candidates import Candidates
from raysim.world.policies.policy import Policy
from raysim.world.policies.weighted import draw


class PowerOfChoice(Policy):
    """Among `candidates` clients drawn by samples, those whose last known losses are the largest are picked.

    Cho, Wang, Joshi, Towards understanding biased client selection in federated learning, AISTATS 2022: the variant
    rpow-d, which knows a client's loss from its last training, so that candidates compute and send nothing. As there,
    the loss of a client that has not reported yet is infinite. Here it is that of the first mini-batch, before
    training, instead of the mean over all mini-batches.
    """

    name: str = "power_of_choice"
    candidates: Annotated[Clients, Field(examples=[8])]
    """How many of the idle clients are drawn, in each draw with probability in proportion to samples: d in the paper.
    At least as many are drawn as are wanted."""

    needs_losses: ClassVar[bool] = True

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> list[int]:
        drawn = np.array(draw(candidates.idle, candidates.samples, max(self.candidates, wanted), generator))
        loss = candidates.reports.loss[drawn]
        order = np.where(np.isnan(loss), -np.inf, -loss).argsort(kind="stable")  # among equals, the first drawn
        picked: list[int] = drawn[order[:wanted]].tolist()
        return picked

    def problems(self, clients: int, classes: int | None) -> Iterator[tuple[str, str]]:
        if self.candidates > clients:
            yield "candidates", f"must be at most the number of clients, {clients}, got {self.candidates}; lower it"
