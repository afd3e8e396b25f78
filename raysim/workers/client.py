"""What client actors host: the numerics of their tasks, as functions of what they are given."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from raysim.local.model import Model
from raysim.local.task import Task
from raysim.scenario import Scenario
from raysim.terms import Record
from raysim.workers import wire
from raysim.workers.protocol import Member
from raysim.workers.wire import Wire
from raysim.workers.workbench import EVALUATING, LOGGED, Workbench, solver_columns


class Worker(Workbench):
    """The numerics of clients, under an algorithm with a server."""

    def __init__(self, scenario: Scenario, gpus: float) -> None:
        super().__init__(scenario, gpus)
        self.algorithm = scenario.central

    # --- training -----------------------------------------------------------------------------------------------------

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

    # --- evaluation ---------------------------------------------------------------------------------------------------

    def evaluate(self, split: str, first: int, last: int, message: Wire) -> tuple[dict[str, float]]:
        """Sums of metrics of the server's model over a split's rows first to last (exclusive), with their number."""
        model = self._received(wire.receive(message, self.device))
        samples, rows = self.evaluated[split]
        self.net.take_solves()
        with self.net.evaluating(model) as module:
            return (self._measure(module, samples, rows[first:last]),)

    def evaluate_clients(
        self, clients: tuple[int, ...], version: int, unseen: bool, message: Wire, *states: Wire
    ) -> tuple[list[dict[str, float]]]:
        """The same of each client's own model over its own test samples. unseen: they never took part, and adapt."""
        received = wire.receive(message, self.device)
        sums = []
        for place, client in enumerate(clients):
            self.net.take_solves()
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

    # --- messages -----------------------------------------------------------------------------------------------------

    def _task(self, client: int, number: int, message: Record) -> Task:
        return self._work_on(client, number, self._received(message))

    def _received(self, message: Record) -> Model:
        """The message's model; of one that holds the shared part only, with the initial personal part."""
        w, buffers = message["w"], message["buffers"]
        if len(w) == self.net.layout.size:
            return self.start.replace(w=w, buffers=buffers)
        return self.start.replace(shared=w, buffers=buffers)

    def _first_state(self) -> Record:
        """The server's, before the first round."""
        return {"buffers": self.start.buffers, **self.algorithm.init(self.start, self.population)}

    def _message(self, state: Record) -> Record:
        """With the model, which is evaluated even where nothing is sent."""
        return {"buffers": state["buffers"], "w": state["w"], **self.algorithm.message(state)}

    def _down_bytes(self, message: Record) -> int:
        return wire.size(message, self.net.layout) if self._sends else 0

    @cached_property
    def _sends(self) -> bool:
        """Whether clients are sent anything."""
        return bool(self.algorithm.message(self._first_state()))
