"""What a decentralised algorithm is: one frozen part that says what a peer does with its neighbours, and no server.

A round of a peer: `local` gives a draft and a message to all neighbours; `mix` makes the next state of the draft and of
what came. State, draft and message are Records, put in and given back, never changed in place.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from raysim.part import Part
from raysim.terms import Record

if TYPE_CHECKING:
    from torch import Tensor

    from raysim.errors import Problem
    from raysim.local.model import Model
    from raysim.local.task import Task
    from raysim.scenario import Scenario


class Inbox(NamedTuple):
    """What a peer has of itself and of its neighbours. A message that was lost is not in it."""

    own: Record  # its own message
    messages: list[Record]  # of neighbours, by their number; the newest of each that has arrived
    weights: list[float]  # W_ij of the same; what is left to 1 is the peer's own

    def mean(self, key: str) -> Tensor:
        """M_i[x]: the plain mean over neighbours, without the peer itself; its own where nobody was heard of."""
        if not self.messages:
            return self.own[key]
        total = self.messages[0][key].clone()
        for message in self.messages[1:]:
            total.add_(message[key])
        return total.div_(len(self.messages))

    def mixed(self, key: str) -> Tensor:
        """sum_j W_ij x_j over neighbours and the peer itself."""
        mixed = self.own[key] * (1 - sum(self.weights))
        for weight, message in zip(self.weights, self.messages, strict=True):
            mixed.add_(message[key], alpha=weight)
        return mixed


class Peer(Part):
    """An algorithm without a server. A subclass adds its `name`.

    A class of your own runs as `algorithm: my_module:MyClass`. One that comes with raysim is imported in
    `raysim/algorithms/__init__.py`, in one line, and has no other place to be registered.

    BatchNorm's buffers are kept as the parameters are: a state that holds `w` holds `buffers` beside it, and an
    algorithm whose messages carry `w` sends and mixes both. They are empty in most models, and then cost nothing.
    """

    name: str

    def problems(self, scenario: Scenario) -> Iterable[Problem]:
        """What it cannot do with the rest of the scenario; paths start at the scenario."""
        return ()

    def init(self, task: Task) -> Record:
        """A peer's first state. task.received, here and below: the model that all peers start from."""
        return {"w": task.received.w, "buffers": task.received.buffers}

    @abstractmethod
    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        """The draft that `mix` gets, and the message to every neighbour, whose size is what travels on an edge.

        What `Trained.send` adds for the tables only may be in either: the engine takes it out.
        """

    @abstractmethod
    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        """The next state. A peer that has heard of nobody yet has an inbox without messages."""

    def personal(self, task: Task, state: Record) -> Model:
        """What the peer predicts with."""
        return task.received.replace(w=state["w"], buffers=state["buffers"])
