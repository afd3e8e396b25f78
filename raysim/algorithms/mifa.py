"""Memory-augmented impatient federated averaging (MIFA).

Gu, Huang, Zhang, Huang, Fast federated learning in the presence of arbitrary device unavailability, NeurIPS 2021,
Algorithm 1.

As in the authors' code, the server moves in each round, also where no update arrived: along the same mean again.

Differences from the paper: there, all clients take part in the first round; here, the update of a client that has not
taken part yet counts as 0. The last update of a client is kept as that client's state, and the client sends by how much
it changes, so the server keeps only the mean. Updates are multiplied by local rates, which the paper divides by.
"""

from typing import ClassVar

from raysim.algorithms.moving import Moving
from raysim.algorithms.signatures import Arrivals, Direction, Model, ServerTask, Task, Weights
from raysim.parts.part import Positive
from raysim.terms import Buffer, Population, Record, Round


class MIFA(Moving):
    """The server moves along the mean of the last updates of all clients, those that are away too (Gu et al. 2021)."""

    caches_clients: ClassVar[bool] = True
    increments: ClassVar[tuple[str, ...]] = ("change",)

    name: str = "mifa"
    server_lr: Positive = 1.0
    """Factor of the server's step."""

    @property
    def trigger(self) -> Round | Buffer:
        return Round(late="discard", empty=True)

    def init(self, model: Model, population: Population) -> Record:
        return {**self.starting(model.w), "mean": model.w * 0}

    def client(self, model: Model) -> Record:
        return {"last": model.w * 0}

    def weigh(self, arrivals: Arrivals, population: Population) -> Weights:
        return [1 / population.clients] * len(arrivals)

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received)
        delta = trained.w - message["w"]
        return trained.send(change=delta - state["last"]), {"last": delta}

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        mean = state["mean"] + updates["change"] if arrivals else state["mean"]
        return self.server_lr * mean, {"mean": mean}
