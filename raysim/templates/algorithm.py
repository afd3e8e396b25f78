"""An algorithm with a server: say here which paper it is from, and how it differs from the paper."""

from collections.abc import Sequence

from raysim.algorithms import Arrival, Central, Population, Record, Round
from raysim.algorithms.signatures import Model, ServerTask, Task
from raysim.parts.part import Positive


class AlgorithmTemplate(Central):
    """The server steps along the mean of what clients send."""

    name: str = "template"
    server_lr: Positive = 1.0
    """Factor of the server's step."""

    @property
    def trigger(self) -> Round:  # when the server steps: at each round's end; Buffer(10): with ten updates
        return Round(late="discard")

    def init(self, model: Model, population: Population) -> Record:  # what the server holds before the first round
        return {"w": model.w}

    def client(self, model: Model) -> Record:  # what a client keeps between its updates; {} for nothing
        return {}

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:  # a client's work
        trained = task.train(task.received)
        return trained.send(delta=trained.w - message["w"]), state

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:  # of each update in the sum
        samples = sum(arrival.samples for arrival in arrivals)
        return [arrival.samples / samples for arrival in arrivals]

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: ServerTask) -> Record:
        return {"w": state["w"] + self.server_lr * updates["delta"]}  # never in place: states are shared
