"""What aggregator actors host: the numerics of the server's tasks, as functions of what they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from actors import Gang
from raysim.data import Federation, Split
from raysim.local.samples import Samples
from raysim.local.server_task import Company, ServerTask
from raysim.rng import SERVER
from raysim.terms import Arrival, Buffer, Record
from raysim.workers import tables, wire
from raysim.workers.client import Worker
from raysim.workers.protocol import Described, WorkPerClient
from raysim.workers.wire import Wire
from raysim.workers.workbench import LOGGED


class ServerWorker(Worker):
    """The numerics of a server. It can do what clients do, too, to find out what that costs."""

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

    # --- steps --------------------------------------------------------------------------------------------------------

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

    def finish(self, message: Wire) -> tuple[dict[str, np.ndarray]]:
        """The final model: flat vectors `w` and `buffers`."""
        model = self._received(wire.receive(message, self.device))
        return (wire.send({"w": model.w, "buffers": model.buffers}),)


def _weighed(vectors: Record, buffers: Record, weight: float, share: float, summed: bool) -> tuple[Record, Record]:
    """What a chunk of one client is, of its update as a stack of one and its buffers."""
    if summed:
        vectors = wire.scale({key: stack[0] for key, stack in vectors.items()}, weight)
    return vectors, wire.scale(buffers, share)
