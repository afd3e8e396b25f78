"""The base of algorithms whose clients train the first parts of the server's model, and an exit after each."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from raysim.algorithms.signatures import Arrivals, Correction, Direction, Problems, ServerTask, Setting, Task, Tensor
from raysim.algorithms.sliced import Sliced
from raysim.parts.errors import Problem
from raysim.parts.part import Count
from raysim.terms import Depth, Record

STATISTICS = "statistics"  # the entry of BatchNorm's statistics, (b,), which is averaged like parameters


class Deep(Sliced):
    """An algorithm for models of several depths: a client of level p has the first ceil(p n) of n parts.

    Each part but the last, whose exit is the model's own last layer, ends with an exit: a dense layer on the mean of
    its outputs over pixels or tokens. Clients send differences `delta` and, with BatchNorm, `statistics`.
    """

    trains_exits: ClassVar[bool]
    """Whether a client trains the exits of all its parts, and predicts with their mean; or the last one only."""

    exits: Count = 4
    """Into how many parts (n) of about equally many layers the model is divided, each with an exit. 1: no division."""

    def problems(self, scenario: Setting) -> Problems:
        yield from super().problems(scenario)
        if scenario.model.lora is not None or scenario.model.frozen:
            key = "lora" if scenario.model.lora is not None else "frozen"
            yield Problem(f"model.{key}", f"must be left out for {self.name}, which divides the model; leave it out")
        if scenario.model.name == "vector" and self.exits > 1:
            yield Problem(
                "algorithm.exits", f"must be 1 for vector, which has no layers, got {self.exits}; set it to 1"
            )

    def depth(self, level: float | None) -> Depth:
        from raysim.models.widths import share_of

        first = self.exits if level is None else share_of(self.exits, level)
        return Depth(self.exits, first, every=level is None or self.trains_exits, mean=self.trains_exits)

    @abstractmethod
    def local(
        self, task: Task, message: Record, state: Record
    ) -> tuple[Callable[..., Tensor] | None, Correction | None]:
        """Returns the loss of a client, None for that of the data, and the correction of its gradients."""

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        loss, correction = self.local(task, message, state)
        trained = task.train(task.received, loss=loss, correction=correction)
        trained.log()
        statistics = trained.model.shared_buffers
        sent = {"delta": trained.w - message["w"]} | ({STATISTICS: statistics} if len(statistics) else {})
        return sent, state

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        direction, others = super().direction(state, arrivals, updates, task)
        if STATISTICS in updates:
            held, _ = task.held(arrivals, self.discounted(arrivals, self.weights), "buffers")
            others["buffers"] = (updates[STATISTICS] / held).where(held > 0, state["buffers"])
        return direction, others
