"""An algorithm with a server, one without, and a staleness function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from raysim.algorithms import Arrival, Central, Inbox, Peer, Population, Record, Round, StalenessFunction
from raysim.parts.part import Positive

if TYPE_CHECKING:
    from raysim.local.model import Model
    from raysim.local.server_task import ServerTask
    from raysim.local.task import Task


class Mean(Central):
    """The mean of a round's updates, with momentum at the server."""

    name: str = "outside_mean"
    momentum: Positive = 0.5
    """Factor of the last step."""

    @property
    def trigger(self) -> Round:
        return Round(late="keep")

    def init(self, model: Model, population: Population) -> Record:
        return {"w": model.w, "moved": model.w * 0}

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        return [1 / len(arrivals)] * len(arrivals)

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: ServerTask) -> Record:
        moved = self.momentum * state["moved"] + updates["delta"]
        task.log(moved=moved.norm())
        return {"w": state["w"] + moved, "moved": moved}


class Gossip(Peer):
    """Peers train and mix."""

    name: str = "outside_gossip"

    def local(self, task: Task, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received.replace(w=state["w"], buffers=state["buffers"]))
        draft = {"w": trained.w, "buffers": state["buffers"]}
        return draft, dict(draft)

    def mix(self, task: Task, draft: Record, inbox: Inbox) -> Record:
        return {"w": inbox.mixed("w"), "buffers": inbox.mixed("buffers")}


class Squared(StalenessFunction):
    """S(s) = 1 / (1 + s)^2."""

    name: str = "outside_squared"

    def __call__(self, staleness: float) -> float:
        return 1 / (1 + staleness) ** 2
