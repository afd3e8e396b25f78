"""Federated averaging.

McMahan, Moore, Ramage, Hampson, Aguera y Arcas, Communication-efficient learning of deep networks from decentralized
data, AISTATS 2017, Algorithm 1. Differences: weights are taken over the clients that reported in time, n_i / sum n_i,
as everybody does; the appendix's original form and two more are options. Late updates are discarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from raysim.algorithms.central import Central
from raysim.terms import Arrival, Population, Record, Round

if TYPE_CHECKING:
    from raysim.local.task import Task


def by_samples(arrivals: Sequence[Arrival]) -> list[float]:
    """n_i over the samples of all that arrived."""
    reported = sum(a.samples for a in arrivals)
    return [a.samples / reported for a in arrivals]


class FedAvg(Central):
    """Synchronous averaging of the clients that report in time (McMahan et al. 2017)."""

    name: str = "fedavg"
    weights: Literal["samples", "uniform", "population", "scaled"] = "samples"
    """samples: n_i over those that reported. uniform: 1 over their number. population: p_i = n_i / n, the rest of the
    weight stays with the server's model. scaled: (N / number) p_i, unbiased over sampling, but they do not sum to 1."""

    @property
    def trigger(self) -> Round:
        return Round(late="discard")

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        if self.weights == "samples":
            return by_samples(arrivals)
        if self.weights == "uniform":
            return [1 / len(arrivals)] * len(arrivals)
        whole: float = population.samples
        if self.weights == "scaled":
            whole = whole * len(arrivals) / population.clients
        return [a.samples / whole for a in arrivals]

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Task) -> Record:
        total = sum(self.weigh(arrivals, task.population))
        if self.weights == "scaled":  # sum c_i w_i, where the c_i do not sum to 1
            return {"w": total * state["w"] + updates["delta"]}
        if self.weights == "population":
            buffers = (1 - total) * state["buffers"] + total * updates["buffers"]
            return {"w": state["w"] + updates["delta"], "buffers": buffers}
        return {"w": state["w"] + updates["delta"]}
