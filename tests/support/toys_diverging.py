"""Algorithms in which something stops being finite, at a place that a key says."""

from collections.abc import Sequence
from typing import Any

from toys_lawless import Sound, SoundPeer

from raysim.algorithms import Arrival, Inbox, Record


class Explodes(Sound):
    """One client's training diverges once it got a certain version; or the server's step that makes it does."""

    name: str = "explodes"
    what: str = "loss"
    client_id: int = 3
    version: int = 2

    def update(self, task: Any, message: Record, state: Record) -> Any:
        sent, after = super().update(task, message, state)
        if task.client == self.client_id and message["steps"] >= self.version:
            if self.what == "loss":
                task.log(loss_after=float("inf"))
            if self.what == "update":
                broken = sent["delta"].clone()
                broken[7] = float("nan")
                return {**sent, "delta": broken}, after
        if self.what == "large":
            return {**sent, "delta": sent["delta"] * 0 + 1e30}, after  # finite, though its norm overflows
        return sent, after

    def message(self, state: Record) -> Record:
        return {"w": state["w"], "steps": state["steps"]}

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Any:
        after = super().step(state, arrivals, updates, task)
        if self.what == "large":
            return {**after, "w": state["w"]}
        if self.what == "model" and after["steps"] == self.version:
            return {**after, "w": after["w"] / 0}
        return after

    def personal(self, task: Any, message: Record, state: Record) -> Any:
        model = super().personal(task, message, state)
        explodes = self.what == "personal" and task.client == self.client_id and message["steps"] >= self.version
        return model.replace(w=model.w / 0) if explodes else model


class ExplodingPeer(SoundPeer):
    """One peer's training or mix diverges, once it has mixed a number of times."""

    name: str = "exploding_peer"
    what: str = "local"
    peer: int = 4
    turn: int = 2

    def local(self, task: Any, state: Record) -> Any:
        draft, message = super().local(task, state)
        if self.what == "local" and (task.client, task.dispatch) == (self.peer, self.turn):
            message = {**message, "w": message["w"] / 0}
        return draft, message

    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Any:
        mixed = super().mix(task, draft, inbox)
        if self.what == "mix" and (task.client, task.dispatch) == (self.peer, self.turn):
            mixed = {**mixed, "w": mixed["w"] * float("nan")}
        return mixed
