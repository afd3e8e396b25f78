"""The worker of client actors: it trains and evaluates clients, as functions of the request."""

import time
from contextlib import nullcontext

import numpy as np
import torch
from torch import Tensor

from actors import Answer, Value
from raysim.algorithms import Central
from raysim.data import Federation
from raysim.local.batch_norm import sums
from raysim.local.model import Model
from raysim.local.net import Net
from raysim.local.task import Task
from raysim.parts.rng import generator
from raysim.scenario import Scenario
from raysim.terms import ClientState, Record, Wire, suffixed
from raysim.workers import records, returned
from raysim.workers.evaluation import EVALUATION_BATCH, joined
from raysim.workers.replies import ClientWire, Evaluated, MetricSums, Numbers, TrainedMember
from raysim.workers.requests import (
    ChunkMember,
    ClientHandlers,
    EvaluateClientsRequest,
    EvaluateRequest,
    MetricsRequest,
    SaveClientsRequest,
    Served,
    StatisticsRequest,
    TrainedChunk,
    TrainRequest,
    Update,
)
from raysim.workers.sending import DrawKey
from raysim.workers.server_models import ServerModels
from raysim.workers.workbench import Workbench


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
            key = member.level if isinstance(member.level, str) and self.scenario.apart else None
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
        state = records.state_in(member.state, self.device)
        message = self.models.cut(member.level, message, member.version)
        key = DrawKey(client, number, member.version)
        if self.scenario.sends_each:
            copy = state.downlink if member.missed.versions is not None else {}
            message, kept = self.models.as_received(message, key, copy, variant)
            state = state._replace(downlink=kept)
        who = f"client {client}, its dispatch {number}, model version {member.version}, train"
        before, own = state.algorithm, state._replace(algorithm=variant.cut(state.algorithm, shift))
        task = self.task(client, number, self.models.received(message, variant.start), variant=variant)
        sent, state = self.updated(task, message, own, who)
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
        return variant.net, self.models.with_statistics(model, variant, served)

    def metrics(self, request: MetricsRequest) -> Numbers:
        """Computes own metrics of the outputs that evaluations left."""
        kept = [records.receive(outputs.content, torch.device("cpu")) for outputs in request.outputs]
        return self.evaluator.own_metrics(kept)

    def evaluate_clients(self, request: EvaluateClientsRequest) -> list[dict[str, Evaluated]]:
        """Evaluates each client's own model on its own samples, by split."""
        asked = request.own
        received, level = self.models.received_by(asked), asked.levels[0]
        on = [self.federation.evaluates_on(client) for client in asked.clients]
        if many := self.models.many(asked):
            with self.variant(level).net.evaluating(received[level][1]):
                return self.evaluator.of_many(*many, on)
        evaluated = []
        for place, client in enumerate(asked.clients):
            net = self.variant(asked.levels[place]).net
            net.take_solves()
            own = self.models.predictor(asked, place, received)
            predictor = net.evaluating(own) if isinstance(own, Model) else nullcontext(own)
            with predictor as predict:
                splits = on[place].items()
                evaluated.append({split: self.evaluator.measure(predict, *rows, client) for split, rows in splits})
        return evaluated

    def save_clients(self, request: SaveClientsRequest) -> dict[str, np.ndarray]:
        """Returns clients' own models as flat vectors `w` and `buffers`, with a row for each client.

        Raises TypeError if a client predicts with something other than a model.
        """
        received, vectors = self.models.received_by(request.own), records.Stack()
        for place in range(len(request.own.clients)):
            own = self.models.predictor(request.own, place, received)
            if not isinstance(own, Model):
                raise TypeError(f"run.save_clients: clients must predict with models, got {own!r}; leave the key out")
            vectors.add({"w": own.w, "buffers": own.buffers}, 1.0)
        return records.send(vectors.record)
