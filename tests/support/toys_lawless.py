"""Algorithms that break one rule each, as a newcomer may. Each does so by replacing one method of a sound one."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from raysim.algorithms import Arrival, Buffer, Central, Inbox, Peer, Population, Record, Round, ServerStep


class Sound(Central):
    """FedAvg whose clients keep their last change, with which they predict."""

    name: str = "sound"

    @property
    def trigger(self) -> Any:
        return Round(late="keep")

    def init(self, model: Any, population: Population) -> Record:
        return {"w": model.w, "steps": model.w.new_zeros(())}

    def client(self, model: Any) -> Record:
        return {"last": model.w * 0}

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> Any:
        return [1 / len(arrivals)] * len(arrivals)

    def update(self, task: Any, message: Record, state: Record) -> Any:
        trained = task.train(task.received)
        delta = trained.w - message["w"]
        return trained.send(delta=delta), {"last": delta}

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Any:
        return {"w": state["w"] + updates["delta"], "steps": state["steps"] + 1}

    def personal(self, task: Any, message: Record, state: Record) -> Any:
        return task.received.replace(w=message["w"] + state["last"])


# --- randomness without a generator ---------------------------------------------------------------------------------


class Noisy(Sound):
    """Draws from every global generator, everywhere."""

    def init(self, model: Any, population: Population) -> Record:
        return {**super().init(model, population), "w": noisy(model.w)}

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> Any:
        return [(1 + random.random()) / len(arrivals) for _ in arrivals]

    def message(self, state: Record) -> Record:
        return {"w": noisy(state["w"])}

    def update(self, task: Any, message: Record, state: Record) -> Any:
        sent, after = super().update(task, message, state)
        return {**sent, "delta": noisy(sent["delta"])}, after

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Any:
        return {"w": noisy(state["w"] + updates["delta"])}

    def personal(self, task: Any, message: Record, state: Record) -> Any:
        return task.received.replace(w=noisy(state["last"] + message["w"]))

    def adapt(self, task: Any, message: Record, state: Record) -> Record:
        return {"last": noisy(state["last"])}


def noisy(vector: Any) -> Any:
    import torch

    return vector + 0.01 * (torch.randn_like(vector) + np.random.randn() + random.gauss(0, 1))


class Purposeful(Sound):
    """Draws from generators of its own, by purpose."""

    def update(self, task: Any, message: Record, state: Record) -> Any:
        import torch

        one, same, other = (
            torch.randn(3, generator=task.generator(purpose)) for purpose in ("noise", "noise", "dropout")
        )
        assert one.equal(same)
        assert not one.equal(other)
        sent, after = super().update(task, message, state)
        return {**sent, "delta": sent["delta"] + one[0]}, after

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Any:
        import torch

        noise = torch.randn(len(state["w"]), generator=task.generator("noise"))
        return {"w": state["w"] + updates["delta"] + 0.01 * noise}


class Sharing(Sound):
    """Draws while aggregators share work."""

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Any:
        import torch

        noise = task.reduce(lambda x: torch.randn(1), task.x) + task.reduce(lambda x: torch.randn(1), task.x)
        return {"w": state["w"] + updates["delta"] + 0.01 * noise + 0.01 * torch.randn(1)}


class NoisyPeer(Peer):
    """Draws from every global generator, everywhere."""

    name: str = "noisy_peer"

    def init(self, task: Any) -> Record:
        return {**super().init(task), "w": noisy(task.received.w)}

    def local(self, task: Any, state: Record) -> Any:
        trained = task.train(self.personal(task, state))
        return {"noise": noisy(state["w"] * 0)}, trained.send(w=noisy(trained.w))

    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Any:
        return {"w": noisy(inbox.mixed("w")) + draft["noise"], "buffers": inbox.mixed("buffers")}


# --- changes in place -------------------------------------------------------------------------------------------------


class ChangesMessage(Sound):
    def update(self, task: Any, message: Record, state: Record) -> Any:
        message["w"].mul_(2)
        return super().update(task, message, state)


class ChangesOwnState(Sound):
    def update(self, task: Any, message: Record, state: Record) -> Any:
        state["last"][:3].add_(1)
        return super().update(task, message, state)


class ChangesServerState(Sound):
    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Any:
        state["w"].add_(updates["delta"])
        return {"w": state["w"]}


class ReplacesInServerState(Sound):
    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Any:
        state["w"] = state["w"] + updates["delta"]
        return state


class AddsToMessage(Sound):
    def update(self, task: Any, message: Record, state: Record) -> Any:
        message["half"] = message["w"] / 2
        return super().update(task, message, state)


class ChangesUpdates(Sound):
    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Any:
        return {"w": state["w"] + updates["delta"].mul_(2)}


class ChangesInMessage(Sound):
    def message(self, state: Record) -> Record:
        return {"w": state["w"].mul_(2)}


class ChangesInPersonal(Sound):
    def personal(self, task: Any, message: Record, state: Record) -> Any:
        return task.received.replace(w=message["w"].add_(state["last"]))


class ChangesFirstModel(Sound):
    def init(self, model: Any, population: Population) -> Record:
        return {"w": model.w.zero_()}


# --- what is returned -------------------------------------------------------------------------------------------------


class NoTuple(Sound):
    def update(self, task: Any, message: Record, state: Record) -> Any:
        return task.train(task.received).send(delta=message["w"])


class SendsFloat(Sound):
    def update(self, task: Any, message: Record, state: Record) -> Any:
        sent, after = super().update(task, message, state)
        return {**sent, "size": 0.5}, after


class OtherEntries(Sound):
    """Sends something else if the client's number is odd."""

    def update(self, task: Any, message: Record, state: Record) -> Any:
        sent, after = super().update(task, message, state)
        return ({**sent, "odd": message["w"]} if task.client % 2 else sent), after


class LosesState(Sound):
    def update(self, task: Any, message: Record, state: Record) -> Any:
        return super().update(task, message, state)[0], {}


class UnknownState(Sound):
    def update(self, task: Any, message: Record, state: Record) -> Any:
        sent, after = super().update(task, message, state)
        return sent, {**after, "more": after["last"]}


class ShorterState(Sound):
    def update(self, task: Any, message: Record, state: Record) -> Any:
        sent, after = super().update(task, message, state)
        return sent, {"last": after["last"][:5]}


class OtherType(Sound):
    def update(self, task: Any, message: Record, state: Record) -> Any:
        sent, after = super().update(task, message, state)
        return sent, {"last": after["last"].double()}


class StepsNowhere(Sound):
    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Any:
        return None


class ForgetsModel(Sound):
    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Any:
        return ServerStep({"steps": state["steps"] + 1})


class CountsInFloats(Sound):
    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Any:
        return {**super().step(state, arrivals, updates, task), "steps": 1.0}


class GrowsServerState(Sound):
    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Any:
        return {**super().step(state, arrivals, updates, task), "steps": updates["delta"]}


class NoModelAtFirst(Sound):
    def init(self, model: Any, population: Population) -> Record:
        return {"steps": model.w.new_zeros(())}


class ShortMessage(Sound):
    def message(self, state: Record) -> Record:
        return {"w": state["w"][:7]}


class PredictsNothing(Sound):
    def personal(self, task: Any, message: Record, state: Record) -> Any:
        return state["last"] if task.client % 2 else None


# --- weights and triggers ---------------------------------------------------------------------------------------------


class OneWeight(Sound):
    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> Any:
        return [1.0]


class NoNumbers(Sound):
    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> Any:
        return [float("nan")] * len(arrivals)


class AnArray(Sound):
    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> Any:
        return np.ones(len(arrivals))


class NoTrigger(Sound):
    @property
    def trigger(self) -> Any:
        return 5


class EmptyBuffer(Sound):
    @property
    def trigger(self) -> Any:
        return Buffer(0)


# --- training ---------------------------------------------------------------------------------------------------------


class Misspells(Sound):
    def update(self, task: Any, message: Record, state: Record) -> Any:
        return task.train(task.received, lrr=0.1).send(), state


class WrongValue(Sound):
    def update(self, task: Any, message: Record, state: Record) -> Any:
        return task.train(task.received, lr=-0.1, epochs="two").send(), state


class NoPersonalPart(Sound):
    def update(self, task: Any, message: Record, state: Record) -> Any:
        return task.train(task.received, part="personal").send(), state


# --- peers ------------------------------------------------------------------------------------------------------------


class SoundPeer(Peer):
    """Training, then weighted means."""

    name: str = "sound_peer"

    def local(self, task: Any, state: Record) -> Any:
        trained = task.train(self.personal(task, state))
        return {"start": state["w"]}, trained.send(w=trained.w)

    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Any:
        return {"w": inbox.mixed("w"), "buffers": inbox.mixed("buffers")}


class PeerChangesState(SoundPeer):
    def local(self, task: Any, state: Record) -> Any:
        state["w"].add_(1)
        return super().local(task, state)


class PeerChangesDraft(SoundPeer):
    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Any:
        draft["start"].add_(1)
        return super().mix(task, draft, inbox)


class PeerChangesNeighbour(SoundPeer):
    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Any:
        inbox.messages[1]["w"].mul_(0.5)
        return super().mix(task, draft, inbox)


class PeerSendsNothing(SoundPeer):
    def local(self, task: Any, state: Record) -> Any:
        return task.train(self.personal(task, state)).send(w=state["w"])


class PeerForgets(SoundPeer):
    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Any:
        return {"w": inbox.mixed("w")}


class PeerPredictsNothing(SoundPeer):
    def personal(self, task: Any, state: Record) -> Any:
        return task.received if task.dispatch < 100 else None
