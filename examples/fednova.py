"""FedNova: clients take different numbers of local steps, and the server normalises what they send.

Wang, Liu, Liang, Joshi, Poor, Tackling the objective inconsistency problem in heterogeneous federated optimization,
NeurIPS 2020, equations (6) and (7), for local SGD without momentum, where the normaliser of client i is its number of
steps tau_i. With equal numbers of steps it is FedAvg.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from raysim.algorithms import Arrival, Central, Population, Record, Round
from raysim.parts.errors import Problem


class FedNova(Central):
    """Mean directions of clients, times the mean number of their steps (Wang et al. 2020)."""

    name: str = "fednova:FedNova"

    @property
    def trigger(self) -> Round:
        return Round(late="discard")

    def problems(self, scenario: Any) -> Iterator[Problem]:
        for key, plain in (("optimizer", "sgd"), ("momentum", 0)):
            if (got := getattr(scenario.local, key)) != plain:
                yield Problem(f"local.{key}", f"must be {plain} for FedNova, which divides by the steps, got {got}")

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        samples = sum(arrival.samples for arrival in arrivals)
        return [arrival.samples / samples for arrival in arrivals]  # p_i

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received)
        steps = trained.steps.to(trained.w.dtype)  # tau_i
        return trained.send(direction=(trained.w - message["w"]) / steps, steps=steps), state

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        return {"w": state["w"] + updates["steps"] * updates["direction"]}  # tau_eff = sum_i p_i tau_i
