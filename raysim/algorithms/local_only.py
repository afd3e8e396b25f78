"""Training alone: the baseline without any federation.

Papers on personalised learning call this baseline Local, for example Le et al., Federated deep equilibrium learning,
CIKM 2024, Table 1. There is no equation to follow: a client trains its own model.
"""

from typing import ClassVar

from raysim.algorithms.central import Central
from raysim.algorithms.signatures import Arrivals, Population, Record, Round, Task


class LocalOnly(Central):
    """Each client trains its own model, whenever it is picked; nothing travels.

    With `world.dispatch.per_round` equal to `data.clients`, all clients train in every round; with less, they train as
    much as in a method that samples clients. The global model stays the initial one. A client predicts with its own
    model; before it is first picked, with the initial one. One that is `data.unseen` trains once.
    """

    trigger: ClassVar[Round] = Round(late="keep")
    mixes_models: ClassVar[bool] = True
    own_model: ClassVar[dict[str, str]] = {"w": "w", "buffers": "buffers"}

    name: str = "local_only"

    def message(self, state: Record) -> Record:
        return {}

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        return [0.0] * len(arrivals)

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(self.own(task, state))
        trained.log()
        return {}, self.state_of(trained.model)

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: Task) -> Record:
        return state

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        return self.update(task, message, state)[1]
