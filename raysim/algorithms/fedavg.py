"""Federated averaging (FedAvg).

McMahan, Moore, Ramage, Hampson, Aguera y Arcas, Communication-efficient learning of deep networks from decentralized
data, AISTATS 2017, Algorithm 1.

Differences from the paper: by default, as is usual, weights are n_i / sum n_i over the clients that reported in time;
the form of the paper's appendix and three more are options. Late updates are discarded.
"""

from typing import Literal

from raysim.algorithms.moving import Aggregating
from raysim.algorithms.signatures import Arrivals, Direction, Problems, ServerTask, Setting
from raysim.parts.errors import Problem
from raysim.terms import Buffer, Population, Record, Round

Weights = Literal["samples", "uniform", "expected", "population", "scaled"]


def by_samples(arrivals: Arrivals) -> list[float]:
    """Returns the weight of each update: its client's samples over those of all that arrived."""
    reported = sum(a.samples for a in arrivals)
    return [a.samples / reported for a in arrivals]


class FedAvg(Aggregating):
    """Synchronous averaging of the clients that report in time (McMahan et al. 2017)."""

    name: str = "fedavg"
    weights: Weights = "samples"
    """How updates are weighted, where n_i is the number of client i's samples, n that of all N clients, and m clients
    reported in time. samples: n_i over the sum of those m. uniform: 1 / m. expected: 1 / (q N), where each client is
    picked with probability q, as `world.dispatch.probability` has it (McMahan et al. 2018). population: n_i / n; the
    rest of the weight stays with the server's model. scaled: (N / m) n_i / n, which is unbiased over the choice of
    clients, but does not sum to 1."""

    @property
    def trigger(self) -> Round | Buffer:
        return Round(late="discard")

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        if self.weights == "expected" and scenario.world.dispatch.probability is None:
            text = "must not be expected where no world.dispatch.probability says how many clients a round picks in the"
            yield Problem("algorithm.weights", f"{text} mean; take uniform")

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        if self.weights == "samples":
            return by_samples(arrivals)
        if self.weights == "uniform":
            return [1 / len(arrivals) for _ in arrivals]
        if self.weights == "expected" and population.expected is not None:
            return [1 / population.expected for _ in arrivals]
        whole: float = population.samples
        if self.weights == "scaled":
            whole = whole * len(arrivals) / population.clients
        return [a.samples / whole for a in arrivals]

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        if "delta" not in updates:  # nobody reported, or clients train their own models only
            return None, {}
        delta, total = updates["delta"], sum(self.weigh(arrivals, task.population))
        if self.weights == "scaled":  # w + delta would be the sum of c_i w_i if the weights c_i summed to 1
            return delta + (total - 1) * state["w"], {}
        if self.weights == "population":
            return delta, {"buffers": (1 - total) * state["buffers"] + total * updates["buffers"]}
        return delta, {}
