"""AsyncFedED: an update counts less, the farther the server's model has moved since the client received its own.

Wang, Yang, He, Shi, Chen, AsyncFedED: asynchronous federated learning with Euclidean distance based adaptive weight
aggregation, arXiv 2205.13797, 2022: the staleness gamma = |x_t - x_{t - tau}| / |Delta|, and the server's learning rate
lambda / (gamma + epsilon). Differences from the paper: the number of local epochs is that of the scenario for all
clients, and stays; and clients send the model that they received along with their update, which the paper's server
keeps, so that `up_bytes` is twice as large.
"""

from collections.abc import Sequence
from typing import Any

from raysim.algorithms import Arrival, Buffer, Central, Population, Record
from raysim.parts.part import Positive


class AsyncFedED(Central):
    """Every update is used as it arrives, by its distance from the model now (Wang et al. 2022)."""

    name: str = "asyncfeded:AsyncFedED"
    lam: Positive = 1.0
    """Factor of the server's learning rate (lambda)."""
    epsilon: Positive = 1.0
    """Added to the staleness (epsilon); an update without staleness has the learning rate lambda / epsilon."""

    @property
    def trigger(self) -> Buffer:
        return Buffer(1)

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        return [1.0] * len(arrivals)

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received)
        return trained.send(delta=trained.w - message["w"], received=message["w"]), state

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        moved, length = (state["w"] - updates["received"]).norm(), updates["delta"].norm()
        gamma = moved / length.clamp(min=1e-12)  # a client that has nothing to learn sends zeros
        return {"w": state["w"] + self.lam / (gamma + self.epsilon) * updates["delta"]}
