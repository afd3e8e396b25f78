"""Algorithms of the tests' own, for what no shipped one uses: client state, a personal part, stacked updates."""

from collections.abc import Sequence
from typing import Any

from raysim.algorithms import Arrival, Buffer, Central, Population, Record, Round


class Counting(Central):
    """FedAvg whose clients count how often they were used and keep their last model, with which they predict."""

    name: str = "counting"

    @property
    def trigger(self) -> Round:
        return Round(late="keep")

    def client(self, model: Any) -> Record:
        return {"times": model.w.new_zeros(()), "w": model.w}

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        return [1 / len(arrivals)] * len(arrivals)

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received)
        after = {"times": state["times"] + 1, "w": trained.w}
        return trained.send(delta=trained.w - message["w"], times=after["times"]), after

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        return {"w": state["w"] + updates["delta"], "times": updates["times"]}

    def init(self, model: Any, population: Population) -> Record:
        return {"w": model.w, "times": model.w.new_zeros(())}

    def personal(self, task: Any, message: Record, state: Record) -> Any:
        return task.received.replace(w=state["w"])


class Punctual(Counting):
    """Counting, but late updates are discarded."""

    @property
    def trigger(self) -> Round:
        return Round(late="discard")


class Median(Central):
    """The coordinate-wise median of the updates: it needs every one of them."""

    name: str = "median"

    @property
    def trigger(self) -> Round:
        return Round(late="keep")

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> None:
        return None

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        assert len(updates["delta"]) == len(arrivals)
        return {"w": state["w"] + updates["delta"].median(0).values}


class Sending(Median):
    """Its messages carry an entry that never changes: with every other model as it is, else doubled."""

    def init(self, model: Any, population: Population) -> Record:
        return {"w": model.w, "kept": model.w.new_tensor([3.0]), "steps": model.w.new_zeros(())}

    def message(self, state: Record) -> Record:
        even = int(state["steps"]) % 2 == 0
        return {"w": state["w"], "kept": state["kept"] if even else 2 * state["kept"]}

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        return {**super().step(state, arrivals, updates, task), "steps": state["steps"] + 1}


class Heads(Central):
    """FedPer: the head stays with the client, only the body is averaged."""

    name: str = "heads"

    @property
    def trigger(self) -> Round:
        return Round()

    def init(self, model: Any, population: Population) -> Record:
        return {"w": model.shared}

    def client(self, model: Any) -> Record:
        return {"head": model.personal}

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        return [a.samples / sum(b.samples for b in arrivals) for a in arrivals]

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received.replace(personal=state["head"]))
        return trained.send(w=trained.model.shared), {"head": trained.model.personal.clone()}

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        return {"w": updates["w"]}

    def personal(self, task: Any, message: Record, state: Record) -> Any:
        return task.received.replace(personal=state["head"])


class Hinted(Counting):
    """Clients, who keep their models, are sent one number only, or BatchNorm's buffers as well."""

    buffers: bool = False

    def message(self, state: Record) -> Record:
        return {"times": state["times"], **({"buffers": state["buffers"]} if self.buffers else {})}

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received.replace(w=state["w"]))
        after = {"times": state["times"] + 1, "w": trained.w}
        return trained.send(delta=trained.w - state["w"], times=after["times"]), after


class Silent(Counting):
    """Logs no losses."""

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received)
        update = {"delta": trained.w - message["w"], "times": state["times"], "buffers": trained.model.buffers}
        return update, {**state, "w": trained.w}


class Failing(Counting):
    """Raises at one client."""

    client_id: int = 3

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        if task.client == self.client_id:
            raise ZeroDivisionError("this client divides by zero")
        return super().update(task, message, state)


class Hungry(Counting):
    """Runs out of memory: of a GPU, or of its node."""

    of_gpu: bool = True

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        import torch

        raise torch.OutOfMemoryError("CUDA out of memory.") if self.of_gpu else MemoryError("Unable to allocate 9 TiB")


class Buffered(Central):
    """The model is the sum of how often each update's client was used before it, itself included."""

    name: str = "buffered"
    size: int = 2

    @property
    def trigger(self) -> Buffer:
        return Buffer(self.size)

    def client(self, model: Any) -> Record:
        return {"times": model.w * 0}

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        return [1.0] * len(arrivals)

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        after = {"times": state["times"] + 1}
        return dict(after), after

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        return {"w": updates["times"]}


class Deadly(Counting):
    """Kills the process that trains a certain client."""

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        if task.client == 5:
            import os

            os._exit(1)
        return super().update(task, message, state)


class Leisurely(Punctual):
    """Punctual, with delays that follow the work done: every second training of a client takes two steps, not one."""

    @property
    def stops_early(self) -> bool:
        return True

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received, steps=1 + task.dispatch % 2)
        after = {"times": state["times"] + 1, "w": trained.w}
        return trained.send(delta=trained.w - message["w"], times=after["times"]), after


class Foreseeing(Counting):
    """Clients predict twice for what everybody has, and once for what they hold."""

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        for inputs in (task.public, task.public, task.x):
            task.predict(task.received, inputs)
        return super().update(task, message, state)


class LeisurelyForeseeing(Foreseeing):
    """Foreseeing, with delays that follow the work done."""

    @property
    def stops_early(self) -> bool:
        return True


class Hesitant(Leisurely):
    """Leisurely, but the server steps whenever two updates have arrived."""

    @property
    def trigger(self) -> Buffer:  # type: ignore[override]
        return Buffer(2)


class Patient(Median):
    """The median, with delays that follow the work done."""

    @property
    def stops_early(self) -> bool:
        return True


class WantsPublic(Counting):
    """Clients look at what everybody has."""

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        assert len(task.public), "there must be public inputs"
        return super().update(task, message, state)


class Scripted(Central):
    """The server's models are given; clients log the first three numbers of what they receive."""

    name: str = "scripted"
    models: tuple[float, ...]

    @property
    def trigger(self) -> Round:
        return Round()

    def init(self, model: Any, population: Population) -> Record:
        return {"w": model.w, "done": model.w.new_zeros(())}

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        return [1.0] * len(arrivals)

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        size, done = len(state["w"]), int(state["done"])
        made = self.models[done * size : (done + 1) * size] or (0.0,) * size
        return {"w": state["w"].new_tensor(made), "done": state["done"] + 1}

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        task.log(**{f"x{place}": float(message["w"][place]) for place in range(3)})
        return {"delta": message["w"] * 0}, state
