"""Decentralised algorithms of the tests' own."""

import os
from typing import Any, ClassVar

import torch

from raysim.algorithms import ADPSGD, SGP, Inbox, Peer, Record, push_sum


class Gossip(Peer):
    """Weighted means without training, from quadratic data's own centres."""

    name: str = "gossip"

    def init(self, task: Any) -> Record:
        return {"w": task.x[0, : len(task.received.w)].clone(), "buffers": task.received.buffers}

    def local(self, task: Any, state: Record) -> tuple[Record, Record]:
        return {}, dict(state)

    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Record:
        return {"w": inbox.mixed("w"), "buffers": inbox.mixed("buffers")}


class Apart(ADPSGD):
    """AD-PSGD from models that differ; or, without any given, from the centres, and without training."""

    name: str = "apart"
    starts: tuple[float, ...] = ()

    def init(self, task: Any) -> Record:
        start = torch.tensor([self.starts[task.client]]) if self.starts else task.x[0, : len(task.received.w)].clone()
        return {"w": start, "buffers": task.received.buffers}

    def local(self, task: Any, state: Record) -> tuple[Record, Record]:
        return super().local(task, state) if self.starts else ({key: value * 0 for key, value in state.items()}, state)


class PushSum(Gossip):
    """Sums of pushed shares, from quadratic data's own centres, beside how much of a peer each sum is."""

    mixes: ClassVar = "push"
    consumes: ClassVar[bool] = True

    def init(self, task: Any) -> Record:
        w = super().init(task)["w"]
        return {"w": w, "buffers": task.received.buffers, "mass": w.new_ones(1)}

    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Record:
        return {key: inbox.pushed(key) for key in ("w", "buffers", "mass")}


class Numerators(push_sum.PushSum):
    """Push-sum whose peers show numerators or weights in place of their models."""

    name: str = "numerators"
    shown: str = "w"

    def personal(self, task: Any, state: Record) -> Any:
        return task.received.replace(w=state[self.shown].expand(len(state["w"])).clone(), buffers=state["buffers"])


class Ratios(SGP):
    """Push-sum from quadratic data's own centres, or from a model that is copied, without training."""

    name: str = "ratios"

    def init(self, task: Any) -> Record:
        copied = task.received.w
        start = copied if copied.any() else task.x[0, : len(copied)].clone()
        return {**super().init(task), "w": start}

    def local(self, task: Any, state: Record) -> tuple[Record, Record]:
        return {}, state


class Averaging(Peer):
    """Training, then weighted means; the draft counts the trainings."""

    name: str = "averaging"

    def init(self, task: Any) -> Record:
        return {"w": task.received.w, "buffers": task.received.buffers, "times": task.received.w.new_zeros(())}

    def local(self, task: Any, state: Record) -> tuple[Record, Record]:
        trained = task.train(self.personal(task, state))
        return {"times": state["times"] + 1}, trained.send(w=trained.w)

    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Record:
        return {"w": inbox.mixed("w"), "buffers": inbox.mixed("buffers"), **draft}


class Foreseeing(Averaging):
    """Averaging that takes the gradient and the outputs of all own samples, trains again when it mixes, and predicts
    with each neighbour's model for those and for what everybody has."""

    def samples_seen(self, local: Any, samples: int) -> int:
        return super().samples_seen(local, samples) + samples

    def local(self, task: Any, state: Record) -> tuple[Record, Record]:
        task.gradient(self.personal(task, state))
        task.predict(self.personal(task, state), task.x)
        return super().local(task, state)

    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Record:
        for message in inbox.messages:
            for inputs in (task.public, task.x):
                task.predict(task.received.replace(w=message["w"]), inputs)
        mixed = super().mix(task, draft, inbox)
        return {**mixed, "w": task.train(task.received.replace(w=mixed["w"])).w}


class Failing(Averaging):
    """One peer's third training divides by zero."""

    def local(self, task: Any, state: Record) -> tuple[Record, Record]:
        if task.client == 4 and state["times"] == 2:
            raise ZeroDivisionError("this peer divides by zero")
        return super().local(task, state)


class Deadly(Averaging):
    """Kills the process that lets a certain peer mix."""

    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Record:
        if task.client == 5:
            os._exit(1)
        return super().mix(task, draft, inbox)
