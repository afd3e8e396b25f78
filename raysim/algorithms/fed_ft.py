"""Federated averaging, then fine-tuning at the server.

A baseline of Zhu et al., Guided model merging for hybrid data learning, 2025, which calls it Fed+FT: the average is
fine-tuned in each round, and clients go on from what comes of it. The paper tunes `server_lr` over 1e-5, 1e-4, 1e-3 and
`server_epochs` over 1, 10, 20, and does not name the optimiser: Adam is taken, a fresh one in each round. Where nobody
reports in time, the model of the round before is fine-tuned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from raysim.algorithms.fedavg import by_samples
from raysim.algorithms.hybrid import Hybrid, needs_server_data
from raysim.errors import Problem
from raysim.terms import Arrival, Population, Record, Round

if TYPE_CHECKING:
    from raysim.local.task import Task
    from raysim.scenario import Scenario


class FedFT(Hybrid):
    """FedAvg whose average the server fine-tunes on samples of its own, in each round (Zhu et al. 2025)."""

    name: str = "fed_ft"

    @property
    def trigger(self) -> Round:
        return Round(late="discard", empty=True)

    def problems(self, scenario: Scenario) -> Iterable[Problem]:
        return needs_server_data(scenario, in_domain=True)

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        return by_samples(arrivals)

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Task) -> Record:
        average = task.received
        if arrivals:
            average = average.replace(w=state["w"] + updates["delta"], buffers=updates["buffers"])
        tuned = self.fit(task, average)
        return {"w": tuned.w, "buffers": tuned.buffers}
