"""What actors host that simulate peers: the numerics of every task, as functions of what they are given."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from raysim.algorithms.peer import Inbox, Peer
from raysim.data import Federation
from raysim.local.model import Model
from raysim.local.task import PREDICTED, Task
from raysim.scenario import Scenario
from raysim.terms import Record
from raysim.workers import wire
from raysim.workers.peers_protocol import At, Member, Turn, WorkPerPeer
from raysim.workers.protocol import Described
from raysim.workers.wire import Wire
from raysim.workers.workbench import EVALUATING, LOGGED, Workbench, solver_columns

COMPARED_INPUTS = 500  # of the test set, where no inputs are public

Own: TypeAlias = tuple[tuple[Wire, Wire], ...]  # of each peer of a job: its draft and its state, {} where there is none
Messages: TypeAlias = tuple[Wire, ...]  # of each peer of a job


class PeersWorker(Workbench):
    """The numerics of an algorithm without a server."""

    def __init__(self, scenario: Scenario, gpus: float) -> None:
        super().__init__(scenario, gpus)
        assert isinstance(scenario.algorithm, Peer)
        self.algorithm: Peer = scenario.algorithm

    # --- set-up -------------------------------------------------------------------------------------------------------

    def load(self) -> tuple[Described, Federation]:
        """Loads and divides the data, and leaves them."""
        federation = self._federate()
        return self._describe(stateful=True), federation

    def _task(self, peer: int, number: int) -> Task:
        return self._work_on(peer, number, self.start)

    def work(self) -> tuple[WorkPerPeer]:
        """What training and mixing cost: those of the peer with the fewest samples, which hears its own message.

        It mixes with one neighbour and with two: the work is taken to grow as much with each.
        """
        samples = self.federation.samples
        peer = int(np.where(samples > 0, samples, samples.max()).argmin())
        task = self._task(peer, EVALUATING)
        state = self.algorithm.init(task)
        passes, seen = self.net.passes, self.net.seen
        draft, message = self.algorithm.local(task, state)
        predicted = self.net.passes - passes - 3 * (self.net.seen - seen)
        draft, message = (wire.split(record, *LOGGED)[0] for record in (draft, message))
        mixed = []
        for neighbours in (1, 2):
            passes = self.net.passes
            inbox = Inbox(message, [message] * neighbours, [1 / (1 + neighbours)] * neighbours)
            self.algorithm.mix(self._task(peer, EVALUATING), draft, inbox)
            mixed.append(self.net.passes - passes)
        one, two = mixed
        size = wire.size(message, self.net.layout)
        return (WorkPerPeer(self.forward_flops, predicted + 2 * one - two, two - one, size),)

    # --- rounds -------------------------------------------------------------------------------------------------------

    def mix(self, turns: tuple[Turn, ...], *values: Own | Messages) -> tuple[list[dict[str, Any]], Own, Messages]:
        """Mixes what peers and their neighbours have, and trains for the next mix, one peer after another.

        Gives a row a peer for the tables; leaves drafts and states, and messages.
        """
        rows, own, messages = [], [], []
        received = _Received(values, self.device)
        for turn in turns:
            started = time.perf_counter()
            with _named(turn, "mix"):
                state = self._mix(turn, received)
            row: dict[str, Any] = {"mixing_s": time.perf_counter() - started}
            draft: Record = {}
            message: Record = {}
            if turn.trains:
                with _named(turn, "local"):
                    draft, message, row["trained"] = self._local(turn, state)
            own.append((wire.send(draft), wire.send(state if turn.kept else {})))
            messages.append(wire.send(message))
            rows.append(row)
        return rows, tuple(own), tuple(messages)

    def _mix(self, turn: Turn, received: _Received) -> Record:
        if turn.draft is None or turn.message is None:
            return self.algorithm.init(self._task(turn.peer, EVALUATING))
        own, *others = (received[at] for at in (turn.message, *turn.inbox))
        draft = received.draft(turn.draft)
        inbox = Inbox(own, others, list(turn.weights))
        state = self.algorithm.mix(self._task(turn.peer, turn.mixes - 1), draft, inbox)
        wire.unchanged((draft, own, *others))
        return state

    def _local(self, turn: Turn, state: Record) -> tuple[Record, Record, dict[str, Any]]:
        """Draft, message, and what the tables show of the training."""
        started, steps = time.perf_counter(), self.net.steps
        self.net.take_solves()
        draft, message = self.algorithm.local(self._task(turn.peer, turn.mixes), state)
        seconds, steps = time.perf_counter() - started, self.net.steps - steps
        draft, of_draft = wire.split(draft, *LOGGED)
        message, of_message = wire.split(message, *LOGGED)
        logged = {**of_draft, **of_message}
        row = {column: logged[key].item() if key in logged else None for key, column in LOGGED.items()}
        row |= solver_columns(self.net.take_solves())
        row |= {"local_steps": steps, "bytes": wire.size(message, self.net.layout), "seconds": seconds}
        return draft, message, row

    # --- evaluation ---------------------------------------------------------------------------------------------------

    def evaluate(
        self, version: int, members: tuple[Member, ...], *values: Own
    ) -> tuple[list[dict[str, dict[str, float]]]]:
        """Of each peer, by split, sums of metrics over all samples, with their number. version: rounds so far."""
        sums = []
        for member in members:
            self.net.take_solves()
            with self.net.evaluating(self._personal(member, version, values)) as module:
                splits: tuple[str, ...] = self.scenario.run.evaluate_on
                sums.append({split: self._measure(module, *self.evaluated[split]) for split in splits})
        return (sums,)

    def _personal(self, member: Member, version: int, values: tuple[Own, ...]) -> Model:
        (_, state) = values[member.state.value][member.state.row]
        task = self._task(member.peer, EVALUATING + version)
        return self.algorithm.personal(task, wire.receive(state, self.device))

    def compare(self, version: int, members: tuple[Member, ...], *values: Own) -> tuple[dict[str, Any], Wire]:
        """How far peers are from the first member, which is not counted: squared distances, summed over peers.

        Leaves the sum of the differences themselves.
        """
        first, *others = members
        origin = self._compared(self._personal(first, version, values))
        squares = dict.fromkeys(origin, 0.0)
        sums = {key: torch.zeros_like(vector) for key, vector in origin.items()}
        for member in others:
            for key, vector in self._compared(self._personal(member, version, values)).items():
                difference = vector - origin[key]
                squares[key] += float(difference.square().sum())
                sums[key] += difference
        return {"peers": len(others), "squares": squares}, wire.send(sums)

    def _compared(self, model: Model) -> dict[str, Tensor]:
        """What the consensus is about, float64: parameters, and probabilities, scaled to count each input once."""
        vectors = {"consensus": model.w.double()}
        if self.federation.loss == "cross_entropy":
            with self.net.evaluating(model) as module:
                pieces = torch.split(self._compared_inputs, PREDICTED)
                outputs = torch.cat([module(inputs).softmax(-1) for inputs in pieces])
            vectors["consensus_outputs"] = outputs.double() / len(outputs) ** 0.5
        return vectors

    @cached_property
    def _compared_inputs(self) -> Tensor:
        federation = self.federation
        if len(federation.public):
            return self.public
        return self.loader(federation.test, federation.evaluation_rows[:COMPARED_INPUTS])[0]

    def consensus(self, *sums: Wire) -> tuple[dict[str, float]]:
        """The squared length of the sum of all differences."""
        received = [wire.receive(of_some, self.device) for of_some in sums]
        return ({key: float(total.square().sum()) for key, total in wire.merge(received, summed=True).items()},)

    def finish(self, version: int, members: tuple[Member, ...], *values: Own) -> tuple[dict[str, np.ndarray]]:
        """The models' flat vectors `w` and `buffers`, a row a peer."""
        models = [self._personal(member, version, values) for member in members]
        stacked = {"w": [model.w for model in models], "buffers": [model.buffers for model in models]}
        return (wire.send({key: torch.stack(vectors) for key, vectors in stacked.items()}),)


class _Received(dict[At, Record]):
    """Messages by place, each fetched once in a job, for several peers may mix it. values: that the job got."""

    def __init__(self, values: tuple[Any, ...], device: torch.device) -> None:
        self._values, self._device = values, device

    def __missing__(self, at: At) -> Record:
        self[at] = wire.borrow(self._values[at.value][at.row], self._device)
        return self[at]

    def draft(self, at: At) -> Record:
        """Of one peer only."""
        draft, _ = self._values[at.value][at.row]
        return wire.borrow(draft, self._device)


@contextmanager
def _named(turn: Turn, stage: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"peer {turn.peer}, after {turn.mixes} mixes, {stage}")
        raise
