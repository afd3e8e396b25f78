"""What client actors host: it trains and evaluates clients, as functions of the request."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from actors import Answer, Value
from raysim.data import Federation
from raysim.local.model import Model
from raysim.local.task import Task
from raysim.scenario import Scenario
from raysim.terms import Record
from raysim.workers import records, wire
from raysim.workers.replies import Evaluated, MetricSums, OwnMetrics, TrainedClient
from raysim.workers.requests import (
    ChunkMember,
    EvaluateClientsRequest,
    EvaluateKeepingRequest,
    EvaluateRequest,
    KeptOutputs,
    MetricsRequest,
    OwnModels,
    SaveClientsRequest,
    TrainedChunk,
    TrainRequest,
)
from raysim.workers.wire import Wire
from raysim.workers.workbench import EVALUATING, LOGGED, Workbench, joined


class ClientWorker(Workbench):
    """Trains and evaluates clients under an algorithm with a server."""

    def __init__(self, scenario: Scenario, federation: Federation, device: torch.device) -> None:
        super().__init__(scenario, federation, device)
        self.algorithm = scenario.central

    # --- training -----------------------------------------------------------------------------------------------------

    def train(self, request: TrainRequest) -> Answer[list[TrainedClient], TrainedChunk]:
        """Trains a chunk of clients of one server step, one after another."""
        messages: dict[Value[Wire], Record] = {}
        updates, buffers = records.Total() if request.summed else records.Stack(), records.Total()
        after: list[Value[Wire]] = []
        trained = []
        for member in request.members:
            if member.message not in messages:
                messages[member.message] = wire.receive(member.message.content, self.device)
            message = messages[member.message]
            started, seen, steps = time.perf_counter(), self.net.seen, self.net.steps
            self.net.take_solves()
            self.take_logged()
            state = wire.receive(member.state.content, self.device) if member.state else {}
            sent, state = self._update(member, message, state)
            sent, logged = records.split(sent, *LOGGED)
            vectors, own_buffers = records.split(sent, "buffers")
            updates.add(vectors, member.weight)
            buffers.add(own_buffers, member.share)
            if member.state:
                after.append(Value(wire.send(state)))
            columns = self.training_columns(logged, self.net.steps - steps, time.perf_counter() - started)
            trained.append(
                TrainedClient(
                    columns=columns,
                    own=self.take_logged(),
                    samples_seen=self.net.seen - seen,
                    up_bytes=records.size(sent, self.net.layout),
                    down_bytes=self.down_bytes(message),
                )
            )
        update = wire.send({**updates.record, **buffers.record})
        return Answer(trained, TrainedChunk(update=Value(update), states=tuple(after)))

    def _update(self, member: ChunkMember, message: Record, state: Record) -> tuple[Record, Record]:
        task = self.client_task(member.client, member.number, message)
        try:
            update = self.algorithm.update(task, message, state)
            wire.unchanged((message, state))  # the chunk's other clients get this message too
            return update
        except Exception as error:
            where = f"client {member.client}, its dispatch {member.number}, model version {member.version}"
            error.add_note(f"{where}, train")
            raise

    # --- evaluation ---------------------------------------------------------------------------------------------------

    def evaluate(self, request: EvaluateRequest) -> MetricSums:
        """Evaluates the server's model on some rows of a split."""
        return self._evaluate(request, None)

    def evaluate_keeping(self, request: EvaluateKeepingRequest) -> Answer[MetricSums, KeptOutputs]:
        """Evaluates the server's model on some rows of a split. Leaves its outputs and the labels."""
        pairs: list[tuple[Tensor, Tensor]] = []
        sums = self._evaluate(request, pairs)
        outputs, labels = joined(pairs)
        return Answer(sums, KeptOutputs(outputs=Value(wire.send({"outputs": outputs, "labels": labels}))))

    def _evaluate(
        self, request: EvaluateRequest | EvaluateKeepingRequest, pairs: list[tuple[Tensor, Tensor]] | None
    ) -> MetricSums:
        model = self.received(wire.receive(request.message.content, self.device))
        samples, rows = self.evaluated[request.split]
        self.net.take_solves()
        with self.net.evaluating(model) as module:
            return self.sums(module, samples, rows[request.first : request.last], pairs)

    def metrics(self, request: MetricsRequest) -> OwnMetrics:
        """Computes own metrics of the outputs that evaluations left."""
        kept = [wire.receive(outputs.content, torch.device("cpu")) for outputs in request.outputs]
        return self.own_metrics([(record["outputs"], record["labels"]) for record in kept])

    def evaluate_clients(self, request: EvaluateClientsRequest) -> list[Evaluated]:
        """Evaluates each client's own model on its own test samples."""
        message = wire.receive(request.own.message.content, self.device)
        evaluated = []
        for place, client in enumerate(request.own.clients):
            self.net.take_solves()
            own = self._personal(request.own, place, message)
            tested = self.federation.local_test(client)
            if isinstance(own, Model):
                with self.net.evaluating(own) as module:
                    evaluated.append(self.measure(module, *tested))
            else:
                evaluated.append(self.measure(own, *tested))
        return evaluated

    def save_clients(self, request: SaveClientsRequest) -> dict[str, np.ndarray]:
        """Returns clients' own models as flat vectors `w` and `buffers`, with a row for each client.

        Raises TypeError if a client predicts with something other than a model.
        """
        message = wire.receive(request.own.message.content, self.device)
        vectors = records.Stack()
        for place in range(len(request.own.clients)):
            own = self._personal(request.own, place, message)
            if not isinstance(own, Model):
                raise TypeError(f"run.save_clients: clients must predict with models, got {own!r}; leave the key out")
            vectors.add({"w": own.w, "buffers": own.buffers}, 1.0)
        return wire.send(vectors.record)

    def _personal(self, own: OwnModels, place: int, message: Record) -> Model | Callable[[Tensor], Tensor]:
        """Returns what a client predicts with. place: the client's place in `own.clients`."""
        task = self.client_task(own.clients[place], EVALUATING + own.version, message)
        state = wire.receive(own.states[place].content, self.device) if own.states else {}
        self.take_logged()
        if own.unseen:
            state = self.algorithm.adapt(task, message, state)
        found = self.algorithm.personal(task, message, state)
        self.refuse_logged("personal or adapt")
        return found

    # --- messages -----------------------------------------------------------------------------------------------------

    def client_task(self, client: int, number: int, message: Record) -> Task:
        """Returns the task of a client that received the message. number: how often it was dispatched before."""
        return self.task(client, number, self.received(message))

    def received(self, message: Record) -> Model:
        """Returns the model in a message. If that holds the shared part only, the personal part is the initial one."""
        w, buffers = message["w"], message["buffers"]
        if len(w) == self.net.layout.size:
            return self.start.replace(w=w, buffers=buffers)
        return self.start.replace(shared=w, buffers=buffers)

    def first_state(self) -> Record:
        """Returns the server's state before the first round."""
        return {"buffers": self.start.buffers, **self.algorithm.init(self.start, self.population)}

    def message(self, state: Record) -> Record:
        """Returns what clients are sent in this state of the server, with the model, which is evaluated in any case."""
        return {"buffers": state["buffers"], "w": state["w"], **self.algorithm.message(state)}

    def down_bytes(self, message: Record) -> int:
        """Returns the number of bytes that a client downloads."""
        return records.size(message, self.net.layout) if self._sends else 0

    @cached_property
    def _sends(self) -> bool:
        """Whether clients are sent anything."""
        return bool(self.algorithm.message(self.first_state()))
