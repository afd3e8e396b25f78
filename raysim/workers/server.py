"""The worker of aggregators: it does the server's steps, as functions of the request."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from actors import Answer, Gang, Value
from raysim.data import Split
from raysim.local.logged import Logged, is_filled_by_tasks
from raysim.local.samples import Loader, Samples
from raysim.local.server_task import Company, ServerTask
from raysim.parts.errors import BadValue, located
from raysim.parts.rng import SERVER_ID
from raysim.terms import (
    Arrival,
    Buffer,
    ClientState,
    ModelKey,
    Record,
    SearchResult,
    ServerState,
    ServerStep,
    Traffic,
    Weight,
    Wire,
    suffixed,
)
from raysim.uplink.channel import shadows_each
from raysim.workers import records, returned
from raysim.workers.client import ClientWorker
from raysim.workers.records import not_finite
from raysim.workers.releasing import Releasing
from raysim.workers.replies import ClientWire, Described, Numbers, Passes, Searched, StepNumbers, StepReply, WorkCost
from raysim.workers.requests import (
    FinishRequest,
    First,
    FirstRequest,
    ServerHandlers,
    SteppedState,
    StepRequest,
    shares,
)
from raysim.workers.sending import DrawKey
from raysim.workers.shared_requests import CostHandler
from raysim.workers.variants import Variant, require_slice


class _Merged(NamedTuple):
    """The updates of a step."""

    updates: Record  # summed or stacked
    buffers: Record  # averaged over the step's samples
    chunks: list[int]  # the number of updates in each chunk, if they are stacked
    compared: list[Numbers]  # how they compare, if that is asked


class ServerWorker(ClientWorker, ServerHandlers, CostHandler):
    """Does the server's steps. It can also train a client, which it does to measure what an update costs."""

    # --- set-up -------------------------------------------------------------------------------------------------------

    def describe(self) -> Described:
        """Returns what the scheduler must know of the data, the model and the states."""
        transforms = (*self.uplink, *(self.downlink if self.scenario.sends_each else ()))
        stateful = any(self.first_client()) or any(transform.keeps for transform in transforms)
        flops, (_, _, state) = {key: self._flops(key) for key in self._keys}, self._first()
        own: dict[str, Any] = {"stateful": stateful, "pools": self.pools, "flops_at": flops}
        return super().describe()._replace(state=tuple(state), **own)

    def first(self, request: FirstRequest) -> Answer[None, First]:
        """Leaves the first message, the first state of any client, and each entry of the server's first state."""
        clients = {key: self.first_client(key) for key in request.models}
        message, received, state = self._first()
        stored = records.store({name: state[name] for name in request.entries}, message, {}, {})
        sent: tuple[Value[Wire], ...] = tuple(Value(records.send(one)) for one in received)
        fresh: dict[ModelKey, Value[ClientWire]] = {
            key: Value(client.map(records.send)) for key, client in clients.items()
        }
        return Answer(None, First(Value(records.send(message)), sent, fresh, stored))

    def _first(self) -> tuple[Record, tuple[Record, ...], Record]:
        """Returns the first message, the same as clients decode it if that differs, and the first state, flat."""
        state = self.first_state()
        message = self.message(state)
        received, kept = self._decoded(message, 0, {})
        return message, received, ServerState(state, self.releasing.first(), kept).flat()

    def _decoded(
        self, message: Record, version: int, kept: dict[int, Record]
    ) -> tuple[tuple[Record, ...], dict[int, Record]]:
        """Returns a message as all clients decode it, or () if each decodes its own or that is the message, and what
        transforms keep."""
        if not self.downlink or self.scenario.sends_each:
            return (), {}
        received, kept = self.as_received(message, DrawKey(SERVER_ID, version, version), kept, self.variant(1.0))
        return (received,), kept

    def cost(self) -> WorkCost:
        """Measures the FLOPs of one sample's forward pass, the bytes of a message and an update, and for how many
        samples a client predicts besides.

        For that, it trains the client with the fewest samples for one step and, if that predicts, the one with the
        most.
        """
        for level in self.scenario.levels:
            with located("capacity.levels"):
                require_slice(level, self.network, self.some(2), self.first_unit(-1))
        state = self.first_state()
        first = self.message(state)
        if not all(len(one.flatten()) for name, one in self.travelling(first).items() if name not in ("w", "buffers")):
            first = self._filled(state, first)
        levels = {key: self._cost(key, first) for key in self._keys}
        return (levels.get(1.0) or self._cost(1.0, first))._replace(levels=levels)

    def _filled(self, state: Record, first: Record) -> Record:
        """Returns the message after a step with one update, which fills entries that are empty in the first one."""
        variant, client = self.variant(1.0), self.federation.smallest
        update, _ = self._tried(client, self.adapting.apart(variant.cut(self._at(1.0, first)))[0], variant)
        arrival = Arrival(client, 0, 0, 0, 0.0, int(self.federation.samples[client]))
        weights = None if self.algorithm.needs_every_update else self.algorithm.weigh([arrival], self.population)
        total = records.Stack() if weights is None else records.Total()
        alone = {name: one[0] for name, one in weights.items()} if isinstance(weights, dict) else (weights or [1.0])[0]
        total.add(records.split(update, "buffers")[0], alone)
        own, task = self.adapting.apart(state)[0], self.server_task(Gang(), 1, state)
        step = returned.step("step", self.algorithm.step(own, [arrival], total.record, task), own)
        return self.message({**state, **step.state}, 1)

    @property
    def _keys(self) -> tuple[ModelKey, ...]:
        """The keys of models, where clients do not all train the server's."""
        models = self.scenario.models
        return (1.0, *models) if models else self.scenario.levels

    def _cost(self, level: ModelKey, first: Record) -> WorkCost:
        """Measures what an update of a client with the model of a key costs. first: the first message."""
        variant, batch = self.variant(level), self.local.batch_size
        whole = variant.cut(self._at(level, first))
        message, _ = self.adapting.apart(whole)
        update, predicted = self._tried(self.federation.smallest, message, variant)
        layout, received = variant.net.layout, self.travelling(whole)
        most = int(self.federation.samples.max())
        some = self._samples(self.federation.train, np.arange(min(2, len(self.federation.train))))
        kept = len(self.local.optimizer.init(self.start.w))
        return WorkCost(
            forward_flops=self._flops(level),
            passes=self.by_samples(predicted, lambda client: self._tried(client, message, variant)[1]),
            passes_per_neighbour=Passes(0.0, 0.0),
            sizes=variant.sizes,
            tensors=Traffic(records.size(update, layout), records.size(received, layout)),
            up=variant.sending.vectors(self.uplink, update),
            down=variant.receiving.vectors(self.downlink, received),
            memory_bytes=variant.memory_bytes(kept, some, min(batch or most, most)) if self._keys else 0,
        )

    def _flops(self, level: ModelKey) -> float:
        """Returns the FLOPs of one sample's forward pass of a client with the model of a key."""
        if level == 1 and not self.scenario.levels:
            return self.forward_flops
        if isinstance(level, str):
            return self.variant(level).forward_flops(self.some)
        trained = self.algorithm.trains(level, self.population.levels)
        return sum(self.variant(one).forward_flops(self.some) for one in trained) / len(trained)

    def _tried(self, client: int, message: Record, variant: Variant) -> tuple[Record, float]:
        """Trains a client for one step. Returns its update, and how many samples passed forward besides."""
        one_step, before = self.local.model_copy(update={"steps": 1}), variant.net.predicted
        task = self.task(client, 0, self.received(message, variant.start), one_step, variant)
        first = self.first_client(variant.level)
        copies = ClientState(first.algorithm, {name: entry.clone() for name, entry in first.optimizer.items()})
        copies = copies._replace(algorithm=variant.cut(copies.algorithm))
        update, _ = self.updated(task, message, copies, f"client {client}")
        return update, variant.net.predicted - before

    # --- steps --------------------------------------------------------------------------------------------------------

    def step(self, request: StepRequest, gang: Gang) -> Answer[StepReply, SteppedState]:
        """Does the server step that makes the requested version of the model.

        An entry of the state that has not changed, or that the message carries, is not stored again.
        """
        self.at(request.moment)
        state_before = records.receive(records.load(request.state, request.message.content), self.device)
        kept_before, noises, shadows = ServerState.of_flat(state_before)
        before, bound = self.adapting.apart(kept_before)
        parts = self._parts(request)
        merged = [self._merged(variant, part) for variant, part in parts]
        updates, counts = self.adapting.apart(merged[0].updates)
        noise, released = request.noise, None
        if noise is not None and updates:
            largest = self.adapting.largest(bound, request.arrivals)
            released = self.releasing(updates, noise, largest, request.version, noises)
            updates, noises = released.sums, released.kept
        merged[0] = merged[0]._replace(updates=updates)
        after, flops, logged, step = dict(before), 0.0, Logged({}, {}), ServerStep({})
        tasks = [
            self.server_task(gang, request.version, self.mine(variant.level, before), sums.chunks, variant)
            for (variant, _), sums in zip(parts, merged, strict=True)
        ]
        together = [(task, sums.updates) for task, sums in zip(tasks, merged, strict=True) if sums.updates]
        shared: Record = {}
        for (variant, part), task, sums in zip(parts, tasks, merged, strict=True):
            task.together, task.shared = together, shared
            own, given = self.mine(variant.level, before), {**sums.updates, **sums.buffers}
            with self.calling("step", request.version, state=own, updates=given) as where:
                step = returned.step(where, self.algorithm.step(own, part.arrivals, given, task), own)
            after |= self.named(variant.level, {**sums.buffers, **step.state})
            one, number = _one_update(sums.updates, part.weights)
            passing = self.forward_flops if variant.level == 1 else self._flops(variant.level)
            flops += task.passes * passing if task.passes else 0.0
            flops += 2.0 * number * len(part.arrivals) * records.elements(one, variant.net.layout) + task.vector_flops
            logged = Logged(logged.columns | task.logged.columns, logged.own | task.logged.own)
        after |= self.adapting.after(bound, counts, request, self.population)
        message = self.message(after, request.version)
        received, shadows = self._decoded(message, request.version, shadows)
        whole = ServerState(after, noises, shadows).flat()
        reply = StepReply(
            numbers=StepNumbers(
                server_flops=flops,
                cache_bytes=self._kept_bytes(whole, message, one),
                similarity=logged.columns.get("similarity"),
                clip=released.clip if released else None,
                noise_std=released.noise_std if released else None,
                signal_norm=released.signal_norm if released else None,
                own=logged.own,
            ),
            searched=_searched(step.search) if step.search else None,
            diverged=not_finite(
                {key: entry for key, entry in after.items() if key.partition(" of ")[0] in ("w", "buffers")}
            ),
            compared=_in_order(parts, merged, request.arrivals),
        )
        state = records.store({name: whole[name] for name in request.state}, message, state_before, request.state)
        sent: tuple[Value[Wire], ...] = tuple(Value(records.send(one)) for one in received)
        return Answer(reply, SteppedState(Value(records.send(message)), sent, state))

    def _parts(self, request: StepRequest) -> list[tuple[Variant, StepRequest]]:
        """Returns what a step is of: the server's model or, if it has several, each of them, with its arrivals."""
        if len(self.servers) == 1:
            return [(self.servers[0], request)]
        found = []
        for variant in self.servers:
            places = [n for n, arrival in enumerate(request.arrivals) if (arrival.architecture or 1.0) == variant.level]
            weights = None if request.weights is None else tuple(request.weights[place] for place in places)
            arrivals = tuple(request.arrivals[place] for place in places)
            found.append((variant, replace(request, arrivals=arrivals, weights=weights)))
        return found

    def _merged(self, variant: Variant, request: StepRequest) -> _Merged:
        """Returns the updates of a step, or of those with one of its models."""
        # Borrowed, because sums and stacks are new tensors, and the chunks' values are only read.
        vectors, buffers = (
            [self.mine(variant.level, records.borrow(chunk.content[place], self.device)) for chunk in request.chunks]
            for place in (0, 1)
        )
        if len(self.servers) > 1:  # a chunk need not hold updates of each model
            vectors, buffers = list(filter(None, vectors)), list(filter(None, buffers))
        weights, server_sums = request.weights, self.scenario.server_sums
        returned.same_updates(
            f"{type(self.algorithm).__name__}.update", vectors, weights is not None and not server_sums
        )
        compared = _compare(vectors, request.arrivals) if self.scenario.run.compare_updates else []
        sizes = [records.length([stack]) for stack in vectors] if weights is None else []
        if weights is not None and server_sums:
            vectors = records.weighed(vectors, weights)
        if (
            self.scenario.follows_training and buffers
        ):  # each chunk is one client, whose share was not known when it trained
            weighed = zip(buffers, shares(request.arrivals), strict=True)
            buffers = [{key: value * share for key, value in own.items()} for own, share in weighed]
        updates = records.merge(vectors, weights is not None)
        return _Merged(updates, records.merge(buffers, summed=True), sizes, compared)

    def server_task(
        self, gang: Gang, version: int, state: Record, chunks: Sequence[int] = (), variant: Variant | None = None
    ) -> ServerTask:
        """Returns the task of the step that makes this version of a model. variant: that model, if there are several.

        state: the server's before that step, of that model. chunks: the number of updates in each chunk of the step, if
        they are stacked; () if all are in one.
        """
        server, variant = self.federation.server, variant or self.whole
        received = {"buffers": state["buffers"], "w": state["w"], **self._sent(state, version - 1, variant)}
        reference = self._samples(server.reference, np.arange(len(server.reference)))
        task = ServerTask(
            variant.net,
            self.received(received, variant.start),
            self._server_samples(server.split),
            self.local,
            self.population,
            (self.scenario.seed, SERVER_ID, version),
            labels=torch.tensor(server.split.y, device=self.device),
            classes=server.num_classes,
            in_domain=server.in_domain,
            reference=reference if len(reference) else None,
            company=Company(gang, self.scenario.resources.shards),
            chunks=chunks,
        )
        task.moment, task.held = self.moment, self.held
        return task

    def held(
        self, arrivals: Sequence[Arrival], weights: Sequence[float], of: Literal["w", "buffers"] = "w"
    ) -> tuple[Tensor, Tensor]:
        """Returns for each parameter, or number of buffers, the sum of the weights of those that hold it, (d,), and the
        sum of all, 0-d."""
        held, total = torch.zeros_like(getattr(self.start, of)), self.start.w.new_zeros(())
        for arrival, weight in zip(arrivals, weights, strict=True):
            variant = self.variant(arrival.level)
            rows = None
            if getattr(self.algorithm, "holds_labels", False):
                rows = variant.net.rows_of(torch.from_numpy(self.labels_of(arrival.client)))
            of_client: Record = {of: torch.ones_like(getattr(variant.start, of)) if rows is None or of != "w" else rows}
            held.add_(variant.widen(of_client, self.first_unit(arrival.version))[of], alpha=weight)
            total.add_(weight)
        return held, total

    @cached_property
    def releasing(self) -> Releasing:
        """Adds the noise of `release`."""
        return Releasing(self.scenario, self.variant(1.0).sending)

    def _server_samples(self, split: Split) -> Samples:
        return Samples(len(split), lambda places: self.server_loader(split, np.arange(len(split))[places]))

    @cached_property
    def server_loader(self) -> Loader:
        """Turns the server's stored samples into what the module takes."""
        return Loader(self.federation.server.mean, self.federation.server.std, self.device)

    def _kept_bytes(self, state: Record, message: Record, update: Record) -> int:
        """Returns the bytes that a real server would have to keep between steps. update: an example of an update."""
        kept = records.size(state, self.net.layout) + self.net.frozen_bytes
        trigger = self.algorithm.trigger
        if isinstance(trigger, Buffer) and trigger.size > 1:
            kept += trigger.size * records.size(update, self.net.layout)
        if self.algorithm.caches_clients:
            kept += self.population.clients * records.size(self.first_client().algorithm, self.net.layout)
        if shadows_each(self.downlink):
            copies = self.variant(1.0).receiving.channels(self.downlink, self.travelling(message))
            kept += self.population.clients * sum(one.whole_bits for one in copies) // 8
        return kept

    def finish(self, request: FinishRequest) -> dict[str, np.ndarray]:
        """Returns the final model as flat vectors `w` and `buffers`, and the buffers of slices."""
        found: Record = {}
        for served in request.models:
            _, model = self.served(served)
            level, message = served.level, records.borrow(served.message.content, self.device)
            if isinstance(level, str) or level == 1:
                w = model.w if isinstance(level, str) else self.received(message).w  # of which a client may hold less
                found |= {suffixed("w", level): w, suffixed("buffers", level): model.buffers}
            elif len(model.buffers):
                found[f"buffers {level:g}"] = model.buffers
        return records.send(found)


def _in_order(
    parts: Sequence[tuple[Variant, StepRequest]], merged: Sequence[_Merged], arrivals: Sequence[Arrival]
) -> list[Numbers]:
    """Returns how updates of all models compare, in the order of arrivals."""
    found: dict[int, Numbers] = {}
    for (_, part), sums in zip(parts, merged, strict=True):
        found |= {
            arrival.dispatch: one for arrival, one in zip(part.arrivals, sums.compared, strict=bool(sums.compared))
        }
    return [found[arrival.dispatch] for arrival in arrivals] if found else []


def _one_update(updates: Record, weights: Sequence[Weight] | None) -> tuple[Record, int]:
    """Returns entries like those of one update of a step, and how many sums of updates the step has."""
    if weights is None:
        return {key: stack[0] for key, stack in updates.items()}, 1
    if not weights or not isinstance(weights[0], Mapping):
        return updates, 1
    first = f"{next(iter(weights[0]))}."
    return {key.removeprefix(first): entry for key, entry in updates.items() if key.startswith(first)}, len(weights[0])


def _searched(search: SearchResult) -> Searched:
    """Returns what a search found as columns. Raises ValueError if one of the algorithm's own has another length."""
    columns = {name: found.tolist() for name, found in search._asdict().items() if name != "own"}
    own = {}
    for name, found in search.own.items():
        is_filled_by_tasks("coefficients", name)  # raises for all that it has
        if found.shape != search.anchor.shape:
            text = f"must have one number for each of {len(search.anchor)} anchors, got shape {tuple(found.shape)}"
            raise BadValue(f"SearchResult: the own column {name!r} {text}")
        own[name] = found.double().tolist()
    return Searched(columns, own)


def _compare(stacks: Sequence[Record], arrivals: Sequence[Arrival]) -> list[Numbers]:
    """Returns norm and cosine of each update for the table `updates`, in order; null where they are not defined.

    The less clients' data are alike, and the staler updates are, the less they agree (Zhu et al., Guided model merging
    for hybrid data learning, 2025, figure 2).

    stacks: the step's updates, whose "delta" is (n, d) each; [] is returned if they have none. The cosine is that
    between an update and the mean of all, weighted by samples.
    """
    if not stacks or "delta" not in stacks[0]:
        return []
    deltas = torch.cat([stack["delta"] for stack in stacks])
    samples = deltas.new_tensor([float(arrival.samples) for arrival in arrivals])
    mean = samples @ deltas / samples.sum()
    norms = deltas.norm(dim=1)
    cosines = deltas @ mean / (norms * mean.norm())
    pairs = zip(norms.tolist(), cosines.tolist(), strict=True)
    return [{"update_norm": _finite(norm), "update_cosine": _finite(cosine)} for norm, cosine in pairs]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
