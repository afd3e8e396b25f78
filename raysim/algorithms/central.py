"""What an algorithm with a server is: one frozen part that holds its server side and its client side.

Everything that travels or is kept (server state, message, update, client state) is a `Record`: named float32 tensors
or numbers, put in and given back, never changed in place. Checkpoints, byte counts, sums and batching over clients then
need no code of the algorithm's.

A file of algorithms must not import torch at its top: the scheduler reads triggers and weights and needs no tensors.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from raysim.errors import Problem
from raysim.part import Part
from raysim.terms import Arrival, Population, Record, ServerStep, Trigger

if TYPE_CHECKING:
    from torch import Tensor

    from raysim.local import Local
    from raysim.local.model import Model
    from raysim.local.server_task import ServerTask
    from raysim.local.task import Task
    from raysim.scenario import Scenario


class Central(Part):
    """An algorithm with a server, with what most of them share. A subclass adds its `name`.

    A class of your own runs as `algorithm: my_module:MyClass`. One that comes with raysim is imported in
    `raysim/algorithms/__init__.py`, in one line, and has no other place to be registered.
    """

    name: str

    @property
    @abstractmethod
    def trigger(self) -> Trigger:
        """When the server steps."""

    @property
    def stops_early(self) -> bool:
        """Whether a client's steps are known only once it has trained, such as by a tolerance: computed delays then
        follow the work that was really done."""
        return False

    @property
    def caches_clients(self) -> bool:
        """Whether what clients keep here stands for a cache of the server's, which counts as what it keeps."""
        return False

    def samples_seen(self, local: Local, samples: int) -> int:
        """Samples whose gradients a client of so many takes in an update, which computed delays follow: all that it
        would do in its trainings, if they did not stop early. Gradients of a part count like those of the whole."""
        return local.total_samples(samples)

    def problems(self, scenario: Scenario) -> Iterable[Problem]:
        """What it cannot do with the rest of the scenario; paths start at the scenario."""
        return ()

    def init(self, model: Model, population: Population) -> Record:
        """The server's state before the first round. "w": the whole parameter vector, or only its shared part."""
        return {"w": model.w}

    def message(self, state: Record) -> Record:
        """What a picked client receives; its size is what the client downloads. {}: nothing, not even BatchNorm's
        buffers; what its clients do must not depend on the model, which is there to be evaluated."""
        return {"w": state["w"]}

    @abstractmethod
    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float] | None:
        """The weight of each update in the sums that `step` gets; None where `step` needs every update.

        Buffers, such as BatchNorm's statistics, are averaged by samples whatever this says."""

    @abstractmethod
    def step(
        self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: ServerTask
    ) -> Record | ServerStep:
        """Returns the server's next state, from which entries that stay as they are may be left out; or a `ServerStep`,
        which also has what the tables show of a search.

        updates: weighted sums, each entry shaped as a client sent it, or, where `weigh` returns None, stacked with a
        leading axis in the order of `arrivals`; {} where none arrived. task: training and predicting on the server's
        own samples. Several aggregators do a step together: all must return the same, and they share what they give to
        `task.reduce`."""

    def client(self, model: Model) -> Record:
        """A client's state before it first takes part; {} for a client that keeps none. Shapes and types stay."""
        return {}

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        """A client's work: what it sends, and its state after. The state is kept only if a step uses the update."""
        trained = task.train(task.received)
        return trained.send(delta=trained.w - message["w"]), state

    def personal(self, task: Task, message: Record, state: Record) -> Model | Callable[[Tensor], Tensor]:
        """What a client predicts with: a model, or a function from inputs to logits or log-probabilities."""
        return task.received

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        """The state of a client that never took part, once training is over; message: the last. state: that of
        `client`, which such a client keeps, if there is nothing to fit."""
        return state


def needs_personal(scenario: Scenario) -> Iterator[Problem]:
    """A problem, unless the model has a part that stays a client's own."""
    if not scenario.model.personal:
        name = scenario.algorithm.name
        text = f"must name the parameters that stay a client's own, for {name} has some, got none; for example [head]"
        yield Problem("model.personal", text)
