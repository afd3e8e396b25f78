"""Calls all methods of an algorithm with a server, in the order in which a run calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from actors import Alone
from raysim.algorithms import Arrival
from raysim.data import federate
from raysim.laws.calls import Calls
from raysim.laws.law import Broken
from raysim.laws.records import require_record, shapes, state_of
from raysim.laws.subject import Subject
from raysim.terms import Buffer, Record
from raysim.workers import records
from raysim.workers.server import ServerWorker

STEPS = 3  # steps that are tried
UPDATES = 2  # updates in a step at the end of a round


class ServerCalls:
    """The calls of all methods in three steps of the server, each of as many updates as the trigger waits for."""

    def __init__(self, subject: Subject) -> None:
        scenario = subject.scenario
        federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
        self._worker, self._algorithm = ServerWorker(scenario, federation, torch.device("cpu")), scenario.central
        self.weights: list[tuple[str, Sequence[float] | None, int]] = []  # where, the weights, and for how many updates
        self.seen: list[tuple[str, int, int]] = []  # where; a client's samples, and of how many it took gradients
        self.calls = Calls(self._algorithm)
        self.first = self._first()
        self._walk(self.first)

    def _first(self) -> Record:
        worker, algorithm = self._worker, self._algorithm
        state = self.calls.record("init", "", "the first state", algorithm.init, worker.start, worker.population)
        if "w" not in state:
            raise Broken(f"{self.calls.where('init')}: must hold 'w', the model, got {sorted(state)}")
        return {"buffers": worker.start.shared_buffers, **state}

    def _walk(self, state: Record) -> None:
        calls, algorithm = self.calls, self._algorithm
        trigger, clients = algorithm.trigger, self._worker.federation.participants
        size = trigger.size if isinstance(trigger, Buffer) else UPDATES
        first = calls.record("client", "", "a client's state", algorithm.client, self._worker.start)
        own = [first] * clients
        for step in range(STEPS):
            sent = calls.record("message", f"step {step}", "a message", algorithm.message, state)
            message = {"w": state["w"], "buffers": state["buffers"], **sent}
            updates, arrivals = [], []
            for place in range(size):
                client = place % clients
                update, own[client] = self._update(client, step, message, own[client])
                updates.append(update)
                samples = int(self._worker.federation.samples[client])
                arrivals.append(Arrival(client, step * size + place, step, step, 0.0, samples))
            state = self._step(step, state, tuple(arrivals), updates)
        self._own_model(state, own[0])

    def _update(self, client: int, step: int, message: Record, state: Record) -> tuple[Record, Record]:
        which, net = f"client {client}, its dispatch {step}", self._worker.net

        def call(message: Record, state: Record) -> Any:
            before = net.seen
            returned = self._algorithm.update(self._worker.client_task(client, step, message), message, state)
            samples = int(self._worker.federation.samples[client])
            self.seen.append((self.calls.where("update", which), samples, net.seen - before))
            return returned

        what = ("an update", "the client's next state")
        sent, after = self.calls.pair("update", which, what, call, message, state)
        return sent, after if shapes(after) == shapes(state) else state

    def _step(self, step: int, state: Record, arrivals: tuple[Arrival, ...], updates: list[Record]) -> Record:
        samples = sum(arrival.samples for arrival in arrivals)
        weights = self._algorithm.weigh(arrivals, self._worker.population)
        self.weights.append((self.calls.where("weigh", f"step {step}"), weights, len(arrivals)))
        if self._algorithm.needs_every_update:
            weights = None
        given = [1.0] * len(arrivals) if weights is None or len(weights) != len(arrivals) else weights
        total, buffers = records.Stack() if weights is None else records.Total(), records.Total()
        for arrival, weight, update in zip(arrivals, given, updates, strict=True):
            vectors, own = records.split(update, "buffers")
            total.add(vectors, weight)
            buffers.add(own, arrival.samples / samples)

        def call(state: Record, updates: Record) -> Any:
            task = self._worker.server_task(Alone(), step + 1, state)
            return self._algorithm.step(state, arrivals, updates, task)

        found = self.calls("step", f"step {step}", call, state, {**total.record, **buffers.record})
        made = require_record(self.calls.where("step"), state_of(found), "the next state")
        after = {**state, **buffers.record, **made}
        return {key: after[key] if _alike(after[key], state[key]) else state[key] for key in state}

    def _own_model(self, state: Record, own: Record) -> None:
        message = {"w": state["w"], "buffers": state["buffers"], **self._algorithm.message(state)}

        def adapt(message: Record, own: Record) -> Any:
            return self._algorithm.adapt(self._worker.client_task(0, STEPS, message), message, own)

        def personal(message: Record, own: Record) -> Any:
            return self._algorithm.personal(self._worker.client_task(0, STEPS, message), message, own)

        self.calls.record("adapt", "client 0", "the client's state", adapt, message, own)
        self.calls("personal", "client 0", personal, message, own)


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and (one.shape == other.shape or not other.numel())
