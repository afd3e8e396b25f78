"""Stochastic controlled averaging (SCAFFOLD).

Karimireddy, Kale, Mohri, Reddi, Stich, Suresh, SCAFFOLD: Stochastic controlled averaging for federated learning, ICML
2020, Algorithm 1 with option II.

Differences from the paper: none. K is the number of steps that a client really took. Control variates start at 0 and
cover the trained parameters. A late update is discarded along with the change of its client's control variate.
"""

from typing import ClassVar

from raysim.algorithms.moving import Aggregating
from raysim.algorithms.signatures import Arrivals, Direction, Model, Problems, ServerTask, Setting, Task
from raysim.parts.errors import Problem
from raysim.parts.part import Positive
from raysim.terms import Population, Record, Round


class Scaffold(Aggregating):
    """FedAvg with control variates that correct the drift of clients' local steps (Karimireddy et al. 2020)."""

    trigger: ClassVar[Round] = Round(late="discard")
    increments: ClassVar[tuple[str, ...]] = ("control",)

    name: str = "scaffold"
    server_lr: Positive = 1.0
    """Factor of the server's step (eta_g), with which its direction is multiplied."""

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        local = scenario.local
        others = [
            *local.beyond_sgd(),
            *local.beyond_one_rate(),
            ("weight_decay", 0, local.weight_decay),
            ("groups", (), local.groups),
        ]
        for key, plain, got in others:
            if got != plain:
                text = f"must be {plain} for scaffold, whose estimate (x - y) / (K lr) holds for plain SGD, got {got}"
                yield Problem(f"local.{key}", text)

    def init(self, model: Model, population: Population) -> Record:
        return {**self.starting(model.w), "control": model.w * 0}

    def message(self, state: Record) -> Record:
        return {"w": state["w"], "control": state["control"]}

    def client(self, model: Model) -> Record:
        return {"control": model.w * 0}

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        return [1 / len(arrivals)] * len(arrivals)

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        received, server, own = message["w"], message["control"], state["control"]
        correction = server - own
        trained = task.train(task.received, correction=lambda w: correction)
        after = (received - trained.w) / (trained.steps * task.local.lr) - correction
        return trained.send(delta=trained.w - received, control=after - own), {"control": after}

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        share = len(arrivals) / task.population.clients
        return self.server_lr * updates["delta"], {"control": state["control"] + share * updates["control"]}
