"""FedBuff whose server steps with momentum.

Nguyen, Malik, Zhan, Yousefpour, Rabbat, Malek, Huba, Federated learning with buffered asynchronous aggregation, AISTATS
2022, Algorithm 1, with the server's momentum of FedAvgM: Hsu, Qi, Brown, Measuring the effects of non-identical data
distribution for federated visual classification, arXiv 1909.06335, 2019. With momentum 0 it is FedBuff.
"""

from collections.abc import Sequence
from typing import Any

from raysim.algorithms import Arrival, FedBuff, Population, Record
from raysim.parts.part import Fraction


class FedBuffM(FedBuff):
    """FedBuff with heavy-ball momentum at the server: v = momentum v + mean delta, w = w + server_lr v."""

    name: str = "fedbuff_momentum:FedBuffM"
    momentum: Fraction = 0.9
    """Momentum of the server's step. 0: none, which is FedBuff."""

    def init(self, model: Any, population: Population) -> Record:
        return {"w": model.w, "velocity": model.w * 0}

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        velocity = self.momentum * state["velocity"] + updates["delta"]
        return {"w": state["w"] + self.server_lr * velocity, "velocity": velocity}
