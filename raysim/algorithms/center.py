"""Training at the server alone: the baseline that shows what the server's samples are worth without clients.

A baseline of Zhu et al., Guided model merging for hybrid data learning, 2025. The paper tunes `server_lr` over 1e-5,
1e-4, 1e-3 and `server_epochs` over 10, 20, 50.

Differences from the paper: the server trains in every round, each time with a fresh optimiser. For one training without
a break, set `run.rounds: 1`.
"""

from raysim.algorithms.fed_ft import FedFT
from raysim.algorithms.signatures import Arrivals, Local, Population, Record, Task


class Center(FedFT):
    """The server alone trains, on its own samples; clients do nothing (baseline of Zhu et al. 2025)."""

    name: str = "center"

    def samples_seen(self, local: Local, samples: int) -> int:
        return 0

    def message(self, state: Record) -> Record:
        return {}

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        return [0.0] * len(arrivals)

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        return {}, state

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: Task) -> Record:
        trained = self.fit(task, task.received)
        return {"w": trained.w, "buffers": trained.buffers}
