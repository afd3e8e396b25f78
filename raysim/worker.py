"""What client and aggregator actors host: the numerics of every task, as functions of what they are given."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from actors import Gang
from raysim import tables, wire
from raysim.algorithms import Arrival, Buffer, Record
from raysim.data import Federation, Split
from raysim.local.model import Model
from raysim.local.samples import Samples
from raysim.local.server_task import Company, ServerTask
from raysim.local.task import Task
from raysim.protocol import Described, Member, WorkPerClient
from raysim.rng import SERVER
from raysim.scenario import Scenario
from raysim.wire import Wire
from raysim.workbench import EVALUATING, LOGGED, Workbench, solver_columns


class Worker(Workbench):
    """The numerics of an algorithm with a server."""

    def __init__(self, scenario: Scenario, gpus: float) -> None:
        super().__init__(scenario, gpus)
        self.algorithm = scenario.central

    # --- set-up -------------------------------------------------------------------------------------------------------

    def load(self) -> tuple[Described, Federation]:
        """Loads and divides the data, which it leaves."""
        federation = self._federate()
        stateful = bool(self.algorithm.client(self.start))
        return self._describe(stateful, tuple(self._first_state())), federation

    def first(self) -> tuple[Any, ...]:
        """Leaves the first message, a client's first state, and each entry of the server's."""
        state, client = self._first_state(), self.algorithm.client(self.start)
        return None, wire.send(self._message(state)), wire.send(client), *wire.send(state).values()

    def _first_state(self) -> Record:
        """The server's, before the first round."""
        return {"buffers": self.start.buffers, **self.algorithm.init(self.start, self.population)}

    def work(self) -> tuple[WorkPerClient]:
        """FLOPs of one sample's forward and backward pass, and bytes of a message and an update.

        An update's size is that of a real one: one step of the client with the fewest samples.
        """
        samples = self.federation.samples
        client = int(np.where(samples > 0, samples, samples.max()).argmin())
        message = self._message(self._first_state())
        task = self._task(client, 0, message)
        task.local = task.local.model_copy(update={"steps": 1})
        update, _ = self.algorithm.update(task, message, self.algorithm.client(self.start))
        update, _ = wire.split(update, *LOGGED)
        flops = 3 * self.forward_flops
        return (WorkPerClient(flops, self._down_bytes(message), wire.size(update, self.net.layout)),)

    # --- clients ------------------------------------------------------------------------------------------------------

    def train(self, members: tuple[Member, ...], summed: bool, messages: int, *values: Wire) -> tuple[Any, ...]:
        """A chunk of clients of one server step, one after another.

        values: the messages, then the state of each member, if clients keep one. Gives a row a member for the tables;
        leaves the sum (or stack) of their updates, then their states.
        """
        received = [wire.receive(value, self.device) for value in values[:messages]]
        states = values[messages:]
        together, buffers = wire.Total() if summed else wire.Stack(), wire.Total()
        after, rows = [], []
        for place, member in enumerate(members):
            started, seen, steps = time.perf_counter(), self.net.seen, self.net.steps
            self.net.take_solves()
            state = wire.receive(states[place], self.device) if states else {}
            message = received[member.message]
            sent, state = self._update(member, message, state)
            sent, logged = wire.split(sent, *LOGGED)
            vectors, own_buffers = wire.split(sent, "buffers")
            together.add(vectors, member.weight)
            buffers.add(own_buffers, member.share)
            after.append(wire.send(state))
            row = {name: logged[key].item() if key in logged else None for key, name in LOGGED.items()}
            sizes = {"up_bytes": wire.size(sent, self.net.layout), "down_bytes": self._down_bytes(message)}
            row |= {"local_steps": self.net.steps - steps, "samples_seen": self.net.seen - seen}
            row |= solver_columns(self.net.take_solves())
            row["seconds"] = time.perf_counter() - started
            rows.append({**row, **sizes})
        return rows, wire.send({**together.record, **buffers.record}), *(after if states else ())

    def _update(self, member: Member, message: Record, state: Record) -> tuple[Record, Record]:
        task = self._task(member.client, member.number, message)
        try:
            return self.algorithm.update(task, message, state)
        except Exception as error:
            where = f"client {member.client}, its dispatch {member.number}, model version {member.version}"
            error.add_note(f"{where}, train")
            raise

    def _task(self, client: int, number: int, message: Record) -> Task:
        return self._work_on(client, number, self._received(message))

    def _received(self, message: Record) -> Model:
        """The message's model; of one that holds the shared part only, with the initial personal part."""
        w, buffers = message["w"], message["buffers"]
        if len(w) == self.net.layout.size:
            return self.start.replace(w=w, buffers=buffers)
        return self.start.replace(shared=w, buffers=buffers)

    # --- server -------------------------------------------------------------------------------------------------------

    def step(
        self,
        gang: Gang,
        version: int,
        arrivals: tuple[Arrival, ...],
        summed: bool,
        factors: list[tuple[float, float]] | None,
        names: tuple[str, ...],
        *values: Any,
    ) -> tuple[Any, ...]:
        """The server step that makes this version. Gives what the tables show of it; leaves the message after it, and
        each entry of the state, in the order of their names: the very array that came where it stayed the same.

        values: entries of the state, by `names`, then what `train` left, a record a chunk. factors: where chunks are of
        one client each, the weights of its update and buffers.
        """
        stored = dict(zip(names, values, strict=False))
        parts = [wire.split(wire.receive(chunk, self.device), "buffers") for chunk in values[len(names) :]]
        if factors:
            parts = [_weighed(*part, *factor, summed) for part, factor in zip(parts, factors, strict=True)]
        before = wire.receive(stored, self.device)
        mean = wire.merge([buffers for _, buffers in parts], summed=True)  # over the step's samples
        updates = {**wire.merge([vectors for vectors, _ in parts], summed), **mean}
        del parts  # while a search goes on
        task = self._server_task(gang, version, before)
        given, shown = tables.take(self.algorithm.step(before, arrivals, updates, task))
        after = {**before, **mean, **given}
        if unknown := sorted(after.keys() - stored.keys()):
            raise ValueError(f"step: must give entries that `init` gave, {sorted(stored)!r}, got {unknown!r} too")
        flops = task.passes * self.forward_flops if task.passes else 0.0
        flops += 2.0 * len(arrivals) * self.net.layout.parameters + shown["steps"].pop("vector_flops", 0.0)
        one = {key: value if summed else value[0] for key, value in updates.items() if key not in mean}
        shown["steps"] |= {"server_flops": flops, "cache_bytes": self._kept_bytes(after, one)}
        sent = wire.send({name: after[name] for name in names if after[name] is not before[name]})
        return shown, wire.send(self._message(after)), *(sent.get(name, stored[name]) for name in names)

    def _server_task(self, gang: Gang, version: int, state: Record) -> ServerTask:
        server = self.federation.server
        key = (self.scenario.seed, SERVER, version)
        received = self._received(self._message(state))
        task = ServerTask(
            self.net, received, self._server_samples(server.split), self.scenario.local, self.population, key
        )
        task.labels = torch.tensor(server.split.y, device=self.device)
        task.classes, task.in_domain = server.num_classes, server.in_domain
        task.company = Company(gang, self.scenario.resources.shards)
        if len(server.reference):
            task.reference = self._samples(server.reference, np.arange(len(server.reference)))
        return task

    def _server_samples(self, split: Split) -> Samples:
        return Samples(len(split), lambda places: self.server_loader(split, np.arange(len(split))[places]))

    def _kept_bytes(self, state: Record, update: Record) -> int:
        """What a server would keep after a step, or until the next. update: one like those that it gets."""
        kept = wire.size(state, self.net.layout) + self.net.frozen_bytes
        trigger = self.algorithm.trigger
        if isinstance(trigger, Buffer) and trigger.size > 1:
            kept += trigger.size * wire.size(update, self.net.layout)
        if self.algorithm.caches_clients:
            kept += self.population.clients * wire.size(self.algorithm.client(self.start), self.net.layout)
        return kept

    def _message(self, state: Record) -> Record:
        """With the model, which is evaluated even where nothing is sent."""
        return {"buffers": state["buffers"], "w": state["w"], **self.algorithm.message(state)}

    def _down_bytes(self, message: Record) -> int:
        return wire.size(message, self.net.layout) if self._sends else 0

    @cached_property
    def _sends(self) -> bool:
        """Whether clients are sent anything."""
        return bool(self.algorithm.message(self._first_state()))

    def finish(self, message: Wire) -> tuple[dict[str, np.ndarray]]:
        """The final model: flat vectors `w` and `buffers`."""
        model = self._received(wire.receive(message, self.device))
        return (wire.send({"w": model.w, "buffers": model.buffers}),)

    # --- evaluation ---------------------------------------------------------------------------------------------------

    def evaluate(self, split: str, first: int, last: int, message: Wire) -> tuple[dict[str, float]]:
        """Sums of metrics of the server's model over a split's rows first to last (exclusive), with their number."""
        model = self._received(wire.receive(message, self.device))
        samples, rows = self.evaluated[split]
        with self.net.evaluating(model) as module:
            return (self._measure(module, samples, rows[first:last]),)

    def evaluate_clients(
        self, clients: tuple[int, ...], version: int, unseen: bool, message: Wire, *states: Wire
    ) -> tuple[list[dict[str, float]]]:
        """The same of each client's own model over its own test samples. unseen: they never took part, and adapt."""
        received = wire.receive(message, self.device)
        sums = []
        for place, client in enumerate(clients):
            own = self._personal(client, version, unseen, received, states[place] if states else {})
            tested = self.federation.local_test(client)
            if isinstance(own, Model):
                with self.net.evaluating(own) as module:
                    sums.append(self._measure(module, *tested))
            else:
                sums.append(self._measure(own, *tested))
        return (sums,)

    def save_clients(
        self, clients: tuple[int, ...], version: int, unseen: bool, message: Wire, *states: Wire
    ) -> tuple[dict[str, np.ndarray]]:
        """Clients' own models: flat vectors `w` and `buffers`, a row each."""
        received = wire.receive(message, self.device)
        vectors = wire.Stack()
        for place, client in enumerate(clients):
            own = self._personal(client, version, unseen, received, states[place] if states else {})
            if not isinstance(own, Model):
                raise TypeError(f"run.save_clients: a client's own must be a model, got {own!r}; leave the key out")
            vectors.add({"w": own.w, "buffers": own.buffers}, 1.0)
        return (wire.send(vectors.record),)

    def _personal(
        self, client: int, version: int, unseen: bool, message: Record, state: Wire
    ) -> Model | Callable[[Tensor], Tensor]:
        """What a client predicts with."""
        task = self._task(client, EVALUATING + version, message)
        own = wire.receive(state, self.device)
        if unseen:
            own = self.algorithm.adapt(task, message, own)
        return self.algorithm.personal(task, message, own)


def _weighed(vectors: Record, buffers: Record, weight: float, share: float, summed: bool) -> tuple[Record, Record]:
    """What a chunk of one client is, of its update as a stack of one and its buffers."""
    if summed:
        vectors = wire.scale({key: stack[0] for key, stack in vectors.items()}, weight)
    return vectors, wire.scale(buffers, share)
