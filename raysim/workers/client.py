"""The worker of client actors: it trains and evaluates clients, as functions of the request."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import numpy as np
import torch
from torch import Tensor

from actors import Answer, Value
from raysim.algorithms import Central
from raysim.data import Federation
from raysim.local.batch_norm import pooled, sums
from raysim.local.model import Model
from raysim.local.net import Net
from raysim.local.task import Task
from raysim.parts.rng import generator
from raysim.scenario import Scenario
from raysim.terms import ClientState, ModelKey, Record, Wire, suffixed
from raysim.workers import records, returned
from raysim.workers.evaluation import EVALUATION_BATCH, joined
from raysim.workers.replies import ClientWire, Evaluated, MetricSums, Numbers, TrainedMember
from raysim.workers.requests import (
    ChunkMember,
    ClientHandlers,
    EvaluateClientsRequest,
    EvaluateRequest,
    MetricsRequest,
    OwnModels,
    SaveClientsRequest,
    Served,
    StatisticsRequest,
    TrainedChunk,
    TrainRequest,
    Update,
)
from raysim.workers.sending import DrawKey
from raysim.workers.server_models import ServerModels
from raysim.workers.variants import Variant
from raysim.workers.workbench import EVALUATING, Workbench


class ClientWorker(Workbench, ClientHandlers):
    """Trains and evaluates clients under an algorithm with a server."""

    algorithm: Central

    def __init__(self, scenario: Scenario, federation: Federation, device: torch.device) -> None:
        super().__init__(scenario, federation, device)
        self.models = ServerModels(self)

    # --- training -----------------------------------------------------------------------------------------------------

    def train(self, request: TrainRequest) -> Answer[list[TrainedMember], TrainedChunk]:
        """Trains a chunk of clients of one server step, one after another."""
        updates, buffers = records.Total() if request.summed else records.Stack(), records.Total()
        after: list[Value[ClientWire]] = []
        trained = []
        first: dict[str | None, Record] = {}  # the first update of each architecture; others must have its entries
        messages: dict[Value[Wire], tuple[Record, Record]] = {}
        for member in request.members:
            sent, state, reply = self._trained(member, messages)
            key = member.level if isinstance(member.level, str) and self.models.apart else None
            where = f"{type(self.algorithm).__name__}.update, client {member.client}"
            returned.same_updates(where, (first.setdefault(key, sent), sent), summed=True)
            vectors, own_buffers = records.split(sent, suffixed("buffers", key or 1.0))
            updates.add(vectors, member.weight)
            buffers.add(own_buffers, member.share)
            if member.state:
                after.append(Value(state.map(records.send)))
            trained.append(reply)
        update: Value[Update] = Value((records.send(updates.record), records.send(buffers.record)))
        return Answer(trained, TrainedChunk(update=update, states=tuple(after)))

    def _trained(
        self, member: ChunkMember, messages: dict[Value[Wire], tuple[Record, Record]]
    ) -> tuple[Record, ClientState[Tensor], TrainedMember]:
        """Trains a client. Returns its update, its next state, and the reply. messages: what was received already, and
        the bound that came with it."""
        if member.message not in messages:
            messages[member.message] = self.models.opened(member.message)
        (message, bound), client, number = messages[member.message], member.client, member.number
        began, variant = time.perf_counter(), self.variant(member.level)
        net, shift = variant.net, self.algorithm.first_unit(member.version)
        seen, steps, predicted = net.seen, net.steps, net.predicted
        net.take_solves()
        self.logged.take()
        self.at(member.moment)
        state, message = self._state_in(member.state), self.models.cut(member.level, message, member.version)
        key = DrawKey(client, number, member.version)
        if self.scenario.sends_each:
            copy = state.downlink if member.missed.versions is not None else {}
            message, kept = self.models.as_received(message, key, copy, variant)
            state = state._replace(downlink=kept)
        who = f"client {client}, its dispatch {number}, model version {member.version}, train"
        before, own = state.algorithm, state._replace(algorithm=variant.cut(state.algorithm, shift))
        sent, state = self.updated(self.models.client_task(client, number, message, variant), message, own, who)
        state = state._replace(algorithm=variant.widen(state.algorithm, shift, before))
        sent = self.samples.distorted(client, number, sent, message)
        base = message if self.algorithm.sends == "model" else {"buffers": message["buffers"]}
        base = {name: entry for name, entry in base.items() if name in sent}
        sent, kept, measured = variant.sending(self.adapting.bounded(self.uplink, bound), key, sent, base, state.uplink)
        state = state._replace(uplink=kept)
        seconds, seen = time.perf_counter() - began, net.seen - seen
        traffic = self.traffic(client, sent, self.models.travelling({**message, **bound}), variant, member.missed)
        sent = {**sent, **self.adapting.counted(measured, self.start.w)}
        numbers = self.numbers(
            client,
            net,
            local_steps=net.steps - steps,
            samples_seen=seen,
            up_bytes=traffic.up,
            down_bytes=traffic.down,
            seconds=seconds,
            **measured,
        )
        passes = seen + (net.predicted - predicted) / 3  # a backward pass costs two forward passes
        reply = TrainedMember(numbers, passes, records.diverged(numbers, sent, "update"))
        return self.models.named(member.level, variant.widen(sent, shift)), state, reply

    def updated(
        self, task: Task, message: Record, state: ClientState[Tensor], who: str
    ) -> tuple[Record, ClientState[Tensor]]:
        """Trains a client. Returns its update, as the algorithm has it, and its next state."""
        kept = state.algorithm
        with self.calling("update", task.client, task.dispatch, who=who, message=message, state=kept) as where:
            task.optimizer = state.optimizer
            answer = self.algorithm.update(task, message, kept)
            sent, after = returned.pair(where, answer, "the update", "the client's next state")
            returned.alike(where, after, kept, "the client's next state", "client")
            return sent, state._replace(algorithm=after)

    def _state_in(self, value: Value[ClientWire] | None) -> ClientState[Tensor]:
        """Returns a client's state, which may be changed in place but for what transforms keep; an empty one if clients
        keep none."""
        if not value:
            return ClientState()
        _, _, up, _, down = value.content.map(partial(records.borrow, device=self.device))
        own = value.content._replace(uplink={}, downlink={}).map(partial(records.receive, device=self.device))
        return own._replace(uplink=up, downlink=down)

    # --- evaluation ---------------------------------------------------------------------------------------------------

    def evaluate(self, request: EvaluateRequest) -> Answer[MetricSums, tuple[Value[Wire], ...]]:
        """Evaluates a model on some rows of a split. Leaves its outputs and the labels, if that is asked."""
        kept: list[Record] = []
        net, model = self.served(request.model)
        samples, rows = self.evaluator.splits[request.split]
        net.take_solves()
        with net.evaluating(model) as module:
            rows = rows[request.first : request.last]
            sums = self.evaluator.sums(module, samples, rows, kept if request.keeps else None)
        if not request.keeps:
            return Answer(sums, ())
        return Answer(sums, (Value(records.send(joined(kept))),))

    def statistics(self, request: StatisticsRequest) -> Answer[None, Value[Wire]]:
        """Collects statistics of BatchNorm for a model."""
        net, model = self.served(request.model)
        split, rows = self.evaluator.splits["train"]
        drawn = generator(self.scenario.seed, "statistics").permutation(rows)[request.first : request.last]
        pieces = (drawn[first : first + EVALUATION_BATCH] for first in range(0, len(drawn), EVALUATION_BATCH))
        found = sums(net, model, (self.loader(split, piece)[0] for piece in pieces))
        return Answer(None, Value(records.send(found)))

    def served(self, served: Served) -> tuple[Net, Model]:
        """Returns a model that is evaluated or saved, with its network."""
        variant = self.variant(served.level)
        message = records.borrow(served.message.content, self.device)  # the network copies it
        message = self.models.cut(served.level, message, served.version)
        model = self.models.received(message, variant.start)
        return variant.net, self._with_statistics(model, variant, served)

    def _with_statistics(self, model: Model, variant: Variant, served: Served) -> Model:
        found = [records.borrow(value.content, self.device) for value in served.statistics]
        return model.replace(buffers=pooled(model.buffers, variant.net.layout, found)) if found else model

    def metrics(self, request: MetricsRequest) -> Numbers:
        """Computes own metrics of the outputs that evaluations left."""
        kept = [records.receive(outputs.content, torch.device("cpu")) for outputs in request.outputs]
        return self.evaluator.own_metrics(kept)

    def evaluate_clients(self, request: EvaluateClientsRequest) -> list[dict[str, Evaluated]]:
        """Evaluates each client's own model on its own samples, by split."""
        messages = self._messages(request.own)
        evaluated = []
        for place, client in enumerate(request.own.clients):
            net = self.variant(request.own.levels[place]).net
            net.take_solves()
            own = self._personal(request.own, place, messages)
            predictor = net.evaluating(own) if isinstance(own, Model) else nullcontext(own)
            with predictor as predict:
                on = self.federation.evaluates_on(client)
                evaluated.append({split: self.evaluator.measure(predict, *rows, client) for split, rows in on.items()})
        return evaluated

    def save_clients(self, request: SaveClientsRequest) -> dict[str, np.ndarray]:
        """Returns clients' own models as flat vectors `w` and `buffers`, with a row for each client.

        Raises TypeError if a client predicts with something other than a model.
        """
        messages, vectors = self._messages(request.own), records.Stack()
        for place in range(len(request.own.clients)):
            own = self._personal(request.own, place, messages)
            if not isinstance(own, Model):
                raise TypeError(f"run.save_clients: clients must predict with models, got {own!r}; leave the key out")
            vectors.add({"w": own.w, "buffers": own.buffers}, 1.0)
        return records.send(vectors.record)

    def _messages(self, own: OwnModels) -> dict[ModelKey, tuple[Record, Model]]:
        """Returns what clients of each level received, with statistics of BatchNorm if they are collected, and the
        model in it, which is the same for all of them."""
        whole, _ = self.models.opened(own.models[0].message)
        found: dict[ModelKey, tuple[Record, Model]] = {}
        for served in own.models:
            variant = self.variant(served.level)
            message = self.models.cut(served.level, whole, served.version)
            with_own = self._with_statistics(self.models.received(message, variant.start), variant, served)
            message = {**message, "buffers": with_own.buffers} if served.statistics else message
            found[served.level] = message, self.models.received(message, variant.start)
        return found

    def _personal(
        self, own: OwnModels, place: int, messages: dict[ModelKey, tuple[Record, Model]]
    ) -> Model | Callable[[Tensor], Tensor]:
        """Returns what a client predicts with. place: the client's place in `own.clients`. messages: what clients of
        each level received."""
        client, number = own.clients[place], EVALUATING + own.version
        self.at(own.moment)
        who = f"client {client}, model version {own.version}, evaluate"
        variant, (message, received) = self.variant(own.levels[place]), messages[own.levels[place]]
        task = self.task(client, number, received, variant=variant)
        state = self._state_in(own.states[place] if own.states else None).algorithm
        state = variant.cut(state, self.algorithm.first_unit(own.version))
        self.logged.take()
        if own.unseen:
            with self.calling("adapt", client, number, who=who, message=message, state=state) as where:
                adapted = returned.record(where, self.algorithm.adapt(task, message, state), "the client's state")
                returned.alike(where, adapted, state, "the client's state", "client")
            state = adapted
        with self.calling("personal", client, number, who=who, message=message, state=state) as where:
            predicts = self.algorithm.personal(task, message, state)
            self.refuse_logged("personal or adapt")
            return returned.predictor(where, predicts, variant.net.layout)
