"""Federated averaging with fine-tuning at the server (Fed+FT).

A baseline of Zhu et al., Guided model merging for hybrid data learning, 2025: in each round the server fine-tunes the
average, and clients continue from the result. The paper tunes `server_lr` over 1e-5, 1e-4, 1e-3 and `server_epochs`
over 1, 10, 20.

Differences from the paper: the paper does not name the optimiser; here it is Adam by default, a fresh one in each
round. In a round without any update in time, the model of the round before is fine-tuned.
"""

from typing import ClassVar

from raysim.algorithms.fedavg import by_samples
from raysim.algorithms.hybrid import Hybrid, needs_server_data
from raysim.algorithms.signatures import Arrivals, Population, Problems, Record, Round, Setting, Task


class FedFT(Hybrid):
    """FedAvg, and the server fine-tunes each average on its own samples (baseline of Zhu et al. 2025)."""

    trigger: ClassVar[Round] = Round(late="discard", empty=True)

    name: str = "fed_ft"

    def problems(self, scenario: Setting) -> Problems:
        return needs_server_data(scenario, in_domain=True)

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        return by_samples(arrivals)

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: Task) -> Record:
        average = task.received
        if arrivals:
            average = average.replace(w=state["w"] + updates["delta"], buffers=updates["buffers"])
        tuned = self.fit(task, average)
        return {"w": tuned.w, "buffers": tuned.buffers}
