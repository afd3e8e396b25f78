"""The worker of aggregators: it does the server's steps, as functions of the request."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from actors import Answer, Gang, Value
from raysim.local.head import rows_of
from raysim.local.logged import Logged
from raysim.local.samples import Loader, Samples
from raysim.local.server_task import Company, ServerTask
from raysim.parts.errors import located
from raysim.parts.rng import SERVER_ID
from raysim.terms import Arrival, ModelKey, Record, ServerState, ServerStep, Wire, suffixed
from raysim.workers import records, returned
from raysim.workers.client import ClientWorker
from raysim.workers.costs import forward_flops, kept_bytes, model_keys, tried, work_cost
from raysim.workers.merging import in_order, merged, one_update
from raysim.workers.records import not_finite
from raysim.workers.releasing import Releasing
from raysim.workers.replies import ClientWire, Described, Measured, StepReply, WorkCost
from raysim.workers.requests import FinishRequest, FirstRequest, ServerHandlers, SteppedState, StepRequest
from raysim.workers.sending import DrawKey
from raysim.workers.variants import Variant, require_slice


class ServerWorker(ClientWorker, ServerHandlers):
    """Does the server's steps. It can also train a client, which it does to measure what an update costs."""

    # --- set-up -------------------------------------------------------------------------------------------------------

    def describe(self) -> Described:
        """Returns what the scheduler must know of the data, the model and the states."""
        transforms = (*self.uplink, *(self.downlink if self.scenario.sends_each else ()))
        stateful = any(self.models.first_client()) or any(transform.keeps for transform in transforms)
        flops, (_, _, state) = {key: forward_flops(self, key) for key in model_keys(self.scenario)}, self._first()
        own: dict[str, Any] = {"stateful": stateful, "pools": self.models.pools, "flops_at": flops}
        return super().describe()._replace(state=tuple(state), **own)

    def first(self, request: FirstRequest) -> Answer[None, SteppedState]:
        """Leaves the first message, the first state of any client, and each entry of the server's first state."""
        clients = {key: self.models.first_client(key) for key in request.models}
        message, received, state = self._first()
        stored = records.store({name: state[name] for name in request.entries}, message, {}, {})
        fresh: dict[ModelKey, Value[ClientWire]] = {
            key: Value(client.map(records.send)) for key, client in clients.items()
        }
        return Answer(None, SteppedState(Value(records.send(message)), received, stored, fresh))

    def _first(self) -> tuple[Record, Value[Wire] | None, Record]:
        """Returns the first message, the same as clients decode it if that differs, and the first state, flat."""
        state = self.models.first_state()
        message = self.models.message(state)
        received, kept = self._decoded(message, 0, {})
        return message, received, ServerState(state, self.releasing.first() if self.releasing else {}, kept).flat()

    def _decoded(
        self, message: Record, version: int, kept: dict[int, Record]
    ) -> tuple[Value[Wire] | None, dict[int, Record]]:
        """Returns a message as all clients decode it, or None if each decodes its own or that is the message, and what
        transforms keep."""
        if not self.downlink or self.scenario.sends_each:
            return None, {}
        received, kept = self.models.as_received(message, DrawKey(SERVER_ID, version, version), kept, self.variant(1.0))
        return Value(records.send(received)), kept

    def cost(self) -> WorkCost:
        """Measures the FLOPs of one sample's forward pass, the bytes of a message and an update, and for how many
        samples a client predicts besides.

        For that, it trains the client with the fewest samples for one step and, if that predicts, the one with the
        most.
        """
        for level in self.scenario.levels:
            with located("capacity.levels"):
                require_slice(level, self.network, self.samples.some(2), self.algorithm.first_unit(-1))
        state = self.models.first_state()
        first = later = self.models.message(state)
        others, _ = records.split(self.models.travelling(first), "w", "buffers")
        if not all(len(one.flatten()) for one in others.values()):
            later = self.filled()
        levels = {key: work_cost(self, key, first, later) for key in model_keys(self.scenario)}
        return (levels.get(1.0) or work_cost(self, 1.0, first, later))._replace(levels=levels)

    def filled(self) -> Record:
        """Returns the message after a step with one update, which fills entries that are empty in the first one."""
        state, variant, client = self.models.first_state(), self.variant(1.0), self.federation.smallest
        message, _ = self.adapting.apart(variant.cut(self.models.at_level(1.0, self.models.message(state))))
        update, _ = tried(self, client, message, variant)
        arrival = Arrival(client, 0, 0, 0, 0.0, int(self.federation.samples[client]))
        weights = None if self.algorithm.needs_every_update else self.algorithm.weigh([arrival], self.population)
        total = records.Stack() if weights is None else records.Total()
        alone = {name: one[0] for name, one in weights.items()} if isinstance(weights, dict) else (weights or [1.0])[0]
        total.add(records.split(update, "buffers")[0], alone)
        own, task = self.adapting.apart(state)[0], self.server_task(Gang(), 1, state)
        task.together = [(task, [arrival], total.record)]
        with self.calling("step", 1, state=own, updates=total.record) as where:
            step = returned.step(where, self.algorithm.step(own, [arrival], total.record, task), own)
        return self.models.message({**state, **step.state}, 1)

    # --- steps --------------------------------------------------------------------------------------------------------

    def step(self, request: StepRequest, gang: Gang) -> Answer[StepReply, SteppedState]:
        """Does the server step that makes the requested version of the model.

        An entry of the state that has not changed, or that the message carries, is not stored again.
        """
        self.at(request.moment)
        state_before = records.receive(records.load(request.state, request.message.content), self.device)
        kept_before, noises, shadows = ServerState.of_flat(state_before)
        before, bound = self.adapting.apart(kept_before)
        parts = merged(self, request)
        updates, counts = self.adapting.apart(parts[0].updates)
        noise, released = request.noise, None
        if noise is not None and updates and self.releasing:
            largest = self.adapting.largest(bound, request.arrivals)
            released = self.releasing(updates, noise, largest, request.version, noises)
            updates, noises = released.sums, released.kept
        parts[0] = parts[0]._replace(updates=updates)
        after, flops, logged, step = dict(before), 0.0, Logged({}, {}), ServerStep({})
        mine = self.models.mine
        tasks = [
            self.server_task(gang, request.version, mine(part.variant.level, before), part.chunks, part.variant)
            for part in parts
        ]
        pairs = zip(tasks, parts, strict=True)
        together = [(task, part.request.arrivals, part.updates) for task, part in pairs if part.updates]
        shared: Record = {}
        for part, task in zip(parts, tasks, strict=True):
            task.together, task.shared = together, shared
            variant, arrivals = part.variant, part.request.arrivals
            own, given = mine(variant.level, before), {**part.updates, **part.buffers}
            with self.calling("step", request.version, state=own, updates=given) as where:
                step = returned.step(where, self.algorithm.step(own, arrivals, given, task), own)
            after |= self.models.named(variant.level, {**part.buffers, **step.state})
            one, number = one_update(part.updates, part.request.weights)
            passing = self.forward_flops if variant.level == 1 else forward_flops(self, variant.level)
            flops += task.passes * passing if task.passes else 0.0
            flops += 2.0 * number * len(arrivals) * records.elements(one, variant.net.layout) + task.vector_flops
            logged = Logged(logged.columns | task.logged.columns, logged.own | task.logged.own)
        after |= self.adapting.after(bound, counts, request, self.population)
        message = self.models.message(after, request.version)
        received, shadows = self._decoded(message, request.version, shadows)
        whole = ServerState(after, noises, shadows).flat()
        reply = StepReply(
            numbers=Measured(
                {
                    **logged.columns,
                    **(released.columns if released else {}),
                    "server_flops": flops,
                    "cache_bytes": kept_bytes(self, whole, message, one),
                },
                logged.own,
            ),
            searched=returned.searched(step.search) if step.search else None,
            diverged=not_finite(
                {key: entry for key, entry in after.items() if key.partition(" of ")[0] in ("w", "buffers")}
            ),
            compared=in_order(parts, request.arrivals),
        )
        state = records.store({name: whole[name] for name in request.state}, message, state_before, request.state)
        return Answer(reply, SteppedState(Value(records.send(message)), received, state))

    def server_task(
        self, gang: Gang, version: int, state: Record, chunks: Sequence[int] = (), variant: Variant | None = None
    ) -> ServerTask:
        """Returns the task of the step that makes this version of a model. variant: that model, if there are several.

        state: the server's before that step, of that model. chunks: the number of updates in each chunk of the step, if
        they are stacked; () if all are in one.
        """
        server, variant = self.federation.server, variant or self.whole
        split = server.split
        received = {"buffers": state["buffers"], "w": state["w"], **self.models.sent(state, version - 1, variant)}
        reference = self.samples.samples_of(server.reference, np.arange(len(server.reference)))
        task = ServerTask(
            variant.net,
            self.models.received(received, variant.start),
            Samples(len(split), lambda places: self.server_loader(split, np.arange(len(split))[places])),
            self.local,
            self.population,
            (self.scenario.seed, SERVER_ID, version),
            labels=torch.tensor(split.y, device=self.device),
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
                rows = rows_of(variant.net, torch.from_numpy(self.samples.labels_of(arrival.client)))
            of_client: Record = {of: torch.ones_like(getattr(variant.start, of)) if rows is None or of != "w" else rows}
            held.add_(variant.widen(of_client, self.algorithm.first_unit(arrival.version))[of], alpha=weight)
            total.add_(weight)
        return held, total

    @cached_property
    def releasing(self) -> Releasing | None:
        """Adds the noise of `release`; None without one."""
        return Releasing(self.scenario, self.variant(1.0).sending) if self.scenario.release is not None else None

    @cached_property
    def server_loader(self) -> Loader:
        """Turns the server's stored samples into what the module takes."""
        return Loader(self.federation.server.mean, self.federation.server.std, self.device)

    def finish(self, request: FinishRequest) -> dict[str, np.ndarray]:
        """Returns the final model as flat vectors `w` and `buffers`, and the buffers of slices."""
        found: Record = {}
        for served in request.models:
            _, model = self.served(served)
            level, message = served.level, records.borrow(served.message.content, self.device)
            if isinstance(level, str) or level == 1:
                whole = model if isinstance(level, str) else self.models.received(message)  # a client may hold less
                found |= {suffixed("w", level): whole.w, suffixed("buffers", level): model.buffers}
            elif len(model.buffers):
                found[f"buffers {level:g}"] = model.buffers
        return records.send(found)
