"""Hybrid federated and centralised learning (HFCL).

Elbir, Coleri, Papazafeiropoulos, Kourtessis, Chatzinotas, A hybrid architecture for federated and centralized learning,
IEEE Transactions on Cognitive Communications and Networking, 2022, in the form that Zhu et al. 2025 use as a baseline:
the server is one more client, which trains from the same model, as `local` says, and is never late.

Differences from the paper: Elbir et al. weigh all models alike, which is the option `weights: uniform`; Zhu et al. do
not say how they weigh them. In a round without any update in time, the server's own model is the next one.
"""

from typing import ClassVar, Literal

from raysim.algorithms.central import Central
from raysim.algorithms.fedavg import by_samples
from raysim.algorithms.hybrid import needs_server_data
from raysim.algorithms.signatures import Arrivals, Population, Problems, Record, Round, Setting, Task


class HFCL(Central):
    """FedAvg with the server as one more client, which trains on its own samples (Elbir et al. 2022)."""

    trigger: ClassVar[Round] = Round(late="discard", empty=True)

    name: str = "hfcl"
    weights: Literal["samples", "uniform"] = "samples"
    """How the models of the clients that reported in time and of the server are weighted. samples: by their numbers of
    samples, of which the server may have far more than a client. uniform: all alike."""

    def problems(self, scenario: Setting) -> Problems:
        return needs_server_data(scenario, in_domain=True)

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        return by_samples(arrivals) if self.weights == "samples" else [1 / len(arrivals) for _ in arrivals]

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: Task) -> Record:
        own = task.train(task.received).model
        if not arrivals:
            return {"w": own.w, "buffers": own.buffers}
        share = 1 / (1 + len(arrivals))
        if self.weights == "samples":
            share = task.samples / (task.samples + sum(a.samples for a in arrivals))
        return {
            "w": (1 - share) * (state["w"] + updates["delta"]) + share * own.w,
            "buffers": (1 - share) * updates["buffers"] + share * own.buffers,
        }
