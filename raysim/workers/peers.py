"""The worker of actors in a run of peers: it mixes, trains and evaluates peers, as functions of the request."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, cached_property

import numpy as np
import torch
from torch import Tensor

from actors import Answer, Value
from raysim.algorithms import Inbox, Peer
from raysim.data.meaning import in_pieces
from raysim.local.model import Model
from raysim.local.settings import Local
from raysim.local.steps import first_kept
from raysim.local.task import PREDICTED
from raysim.terms import ClientState, Record, Traffic, Wire
from raysim.workers import records, returned
from raysim.workers.peer_requests import (
    CompareRequest,
    ConsensusRequest,
    EvaluatePeersRequest,
    FinishPeersRequest,
    MixRequest,
    Mixture,
    Own,
    PeerHandlers,
    PeerState,
    Place,
    Turn,
)
from raysim.workers.records import diverged, not_finite
from raysim.workers.replies import Apart, ClientWire, Evaluated, MixedPeer, Passes, TrainedMember, WorkCost
from raysim.workers.sending import DecodedRecord, DrawKey
from raysim.workers.workbench import EVALUATING, Workbench

COMPARED_INPUTS = 500  # test inputs on which peers' outputs are compared, if there are no public samples


class PeersWorker(Workbench, PeerHandlers):
    """Mixes, trains and evaluates peers under an algorithm without a server."""

    algorithm: Peer

    def cost(self) -> WorkCost:
        """Measures what predictions and mixing cost, with the peer that has the fewest samples and, if they cost
        something, with the one that has the most."""
        passes, more, message = self.tried(self.federation.smallest, self.local)
        return WorkCost(
            forward_flops=self.forward_flops,
            passes=Passes.through(self.federation, passes, lambda peer: self.tried(peer, self.local)[0]),
            passes_per_neighbour=Passes.through(self.federation, more, lambda peer: self.tried(peer, self.local)[1]),
            sizes=self.variant(1.0).sizes,
            tensors=Traffic(*[records.size(message, self.net.layout)] * 2),
            up=self.variant(1.0).sending.vectors(self.uplink, message),
            down={},
        )

    def tried(self, peer: int, local: Local) -> tuple[float, float, Record]:
        """Trains a peer, and mixes copies of its own message, as if from one neighbour and then from two.

        local: how it trains. Returns the number of forward passes without neighbours, besides the gradients of `local`;
        the number of further ones for each neighbour, as if all neighbours took the same; and the message. Raises what
        a run would if the algorithm breaks a rule.
        """
        state = self.first(peer)
        _ = self._first_of_any  # made before counting, because predictions of `init` are no part of a mix
        before = self.net.predicted
        draft, message = self.trained(peer, EVALUATING, state, local)
        predicted = self.net.predicted - before
        mixed = []
        for neighbours in (1, 2):
            before = self.net.passes
            weights = [1 / (1 + neighbours)] * neighbours
            inbox = Inbox(message, [message] * neighbours, weights, shares=weights, kept=weights[0])
            self.mixed(peer, EVALUATING, draft, inbox)
            mixed.append(self.net.passes - before)
        one, two = mixed
        return predicted + 2 * one - two, two - one, message

    # --- rounds -------------------------------------------------------------------------------------------------------

    def mix(self, request: MixRequest) -> Answer[list[MixedPeer], Mixture]:
        """Mixes peers' and their neighbours' messages, and trains for the next mix, one peer after another."""
        mixed, own, messages = [], [], []
        received = cache(lambda place: records.borrow(place.content, self.device))  # several peers may mix one message
        _ = self._first_of_any  # made before counting, as in `tried`
        for turn in request.turns:
            started, passed = time.perf_counter(), self.net.passes
            self.logged.take()
            state = self._mix(turn, received)
            passes = self.net.passes - passed
            if turn.mixes == 0:
                self.refuse_logged("init")
            logged = self.logged.take()
            seconds = time.perf_counter() - started
            draft: ClientState[Tensor] = ClientState()
            message: Record = {}
            trained = None
            if turn.trains:
                draft, message, trained = self._local(turn, state)
            elif self.algorithm.sends_state:
                exact = self.samples.distorted(turn.peer, turn.mixes, state.algorithm, state.algorithm)
                message = self._sent(turn, exact, state).record
            kept: ClientWire = state.map(records.send) if turn.kept else ClientState()
            own.append(Own(draft.map(records.send), kept))
            messages.append(records.send(message))
            mixed.append(MixedPeer(seconds, trained, not_finite(state.algorithm), *logged, passes))
        return Answer(mixed, Mixture(own=Value(tuple(own)), messages=Value(tuple(messages))))

    def _mix(self, turn: Turn, received: Callable[[Place[Wire]], Record]) -> ClientState[Tensor]:
        """Returns a peer's state after its mix, or its first one. received: returns the message of a place."""
        self.at(turn.mixes_at)
        if turn.message is None:
            return self._joined(turn) if turn.joins else self.first(turn.peer)
        own, *others = map(received, (turn.message, *turn.inbox))
        draft: ClientState[Tensor] = ClientState()
        if turn.draft is not None:
            draft = turn.draft.content.draft.map(lambda wire: records.borrow(wire, self.device))
        decoded = own if draft.message else None
        assert self.scenario.topology is not None  # else there would be no others
        step, pushed = self.scenario.topology.step, (turn.shares, turn.kept_share)
        inbox = Inbox(draft.message or own, others, list(turn.weights), decoded, step, *pushed)
        return self.mixed(turn.peer, turn.mixes - 1, draft._replace(message={}), inbox)

    def _local(self, turn: Turn, state: ClientState[Tensor]) -> tuple[ClientState[Tensor], Record, TrainedMember]:
        """Trains a peer. Returns its draft, its message, and what the tables show of the training."""
        started, steps, passed = time.perf_counter(), self.net.steps, self.net.passes
        self.net.take_solves()
        self.at(turn.trains_at)
        draft, exact = self.trained(turn.peer, turn.mixes, state)
        message, kept, measured = self._sent(turn, exact, draft)
        draft = draft._replace(uplink=kept, message={} if message is exact else exact)
        seconds, steps = time.perf_counter() - started, self.net.steps - steps
        up = self.traffic(turn.peer, message, message, self.variant(1.0)).up
        numbers = self.numbers(turn.peer, self.net, local_steps=steps, seconds=seconds, up_bytes=up, **measured)
        return draft, message, TrainedMember(numbers, self.net.passes - passed, diverged(numbers, message, "message"))

    def _sent(self, turn: Turn, exact: Record, kept: ClientState[Tensor]) -> DecodedRecord:
        """Returns a message as neighbours decode it."""
        key = DrawKey(turn.peer, turn.mixes, turn.mixes)
        return self.variant(1.0).sending(self.uplink, key, exact, {}, kept.uplink)

    # --- calls of the algorithm ---------------------------------------------------------------------------------------

    def _joined(self, turn: Turn) -> ClientState[Tensor]:
        """Returns the first state of a peer that was not there at first."""
        model = None if turn.copied is None else self._personal(turn.copied, turn.mixes_at.version)
        state = self.first(turn.peer, model)
        if self.scenario.world.join == "empty":
            nothing = {key: torch.zeros_like(entry) for key, entry in state.algorithm.items()}
            state = state._replace(algorithm=nothing)
        return state

    def first(self, peer: int, model: Model | None = None) -> ClientState[Tensor]:
        """Returns a peer's first state. model: what it starts from; by default what all do."""
        with self.calling("init", peer, who=f"peer {peer}") as where:
            task = self.task(peer, EVALUATING, model or self.start)
            state = returned.record(where, self.algorithm.init(task), "the state")
            return ClientState(state, first_kept(self.scenario.local.optimizer, self.start.w))

    @cached_property
    def _first_of_any(self) -> Record:
        """The algorithm's first state of one peer. Those of all peers have the same entries, shapes and types."""
        return self.first(0).algorithm

    def trained(
        self, peer: int, mixes: int, state: ClientState[Tensor], local: Local | None = None
    ) -> tuple[ClientState[Tensor], Record]:
        """Returns a peer's draft and message. local: how it trains; by default as the scenario says."""
        kept, who = state.algorithm, f"peer {peer}, after {mixes} mixes, local"
        with self.calling("local", peer, mixes, who=who, state=kept) as where:
            task = self.task(peer, mixes, self.start, local)
            task.optimizer = {name: vector.clone() for name, vector in state.optimizer.items()}
            draft, message = returned.pair(where, self.algorithm.local(task, kept), "the draft", "the message")
            distorted = self.samples.distorted(peer, mixes, message, kept)
            return state._replace(algorithm=draft, optimizer=task.optimizer), distorted

    def mixed(self, peer: int, mixes: int, draft: ClientState[Tensor], inbox: Inbox) -> ClientState[Tensor]:
        """Returns a peer's state after a mix. mixes: how often it has mixed before."""
        given = {"draft": draft.algorithm, "its own message": inbox.own}
        given |= {f"the message of neighbour {place}": message for place, message in enumerate(inbox.messages)}
        with self.calling("mix", peer, mixes, who=f"peer {peer}, after {mixes} mixes, mix", **given) as where:
            mixed = self.algorithm.mix(self.task(peer, mixes, self.start), draft.algorithm, inbox)
            state = returned.record(where, mixed, "the state")
            returned.alike(where, state, self._first_of_any, "the state", "init", fills=True)
            return draft._replace(algorithm=state)

    # --- evaluation ---------------------------------------------------------------------------------------------------

    def evaluate(self, request: EvaluatePeersRequest) -> list[dict[str, Evaluated]]:
        """Evaluates peers on all samples of each split. Returns each peer's results by split."""
        evaluated = []
        for asked in request.peers:
            self.net.take_solves()
            with self.net.evaluating(self._personal(asked, request.version)) as module:
                splits = self.scenario.evaluated_splits
                found = self.evaluator
                evaluated.append({split: found.measure(module, *found.splits[split]) for split in splits})
        return evaluated

    def _personal(self, asked: PeerState, version: int) -> Model:
        peer, state = asked.peer, records.receive(asked.own.content.state.algorithm, self.device)
        self.at(asked.moment)
        number, who = EVALUATING + version, f"peer {peer}, after {version} rounds, evaluate"
        with self.calling("personal", peer, number, who=who, state=state) as where:
            task = self.task(peer, number, self.start)
            return returned.model(where, self.algorithm.personal(task, state), self.net.layout)

    def compare(self, request: CompareRequest) -> Answer[Apart, Value[Wire]]:
        """Measures how far peers are from the first one, which is not counted. Leaves the sum of the differences."""
        first, *others = request.peers
        origin = self._compared(self._personal(first, request.version))
        squares = dict.fromkeys(origin, 0.0)
        sums = {key: torch.zeros_like(vector) for key, vector in origin.items()}
        for asked in others:
            for key, vector in self._compared(self._personal(asked, request.version)).items():
                difference = vector - origin[key]
                squares[key] += float(difference.square().sum())
                sums[key] += difference
        return Answer(Apart(peers=len(others), squares=squares), Value(records.send(sums)))

    def _compared(self, model: Model) -> dict[str, Tensor]:
        """Returns the float64 vectors between which distances are measured, by metric.

        These are the parameters and, if the data have labels, the predicted probabilities. Probabilities are divided by
        the root of the number of inputs, so that squared distances are means over inputs.
        """
        vectors = {"consensus": model.w.double()}
        if self.federation.loss == "cross_entropy":
            with self.net.evaluating(model) as module:
                pieces = in_pieces(self._compared_inputs, PREDICTED)
                classes = 1 if self.federation.train.y.ndim == 3 else -1  # pixels have them first
                outputs = torch.cat([module(inputs).softmax(classes) for inputs in pieces])
            vectors["consensus_outputs"] = outputs.double() / len(outputs) ** 0.5
        return vectors

    @cached_property
    def _compared_inputs(self) -> Tensor:
        federation = self.federation
        if len(federation.public):
            return self.samples.public
        return self.loader(federation.test, federation.evaluation_rows[:COMPARED_INPUTS])[0]

    def consensus(self, request: ConsensusRequest) -> dict[str, float]:
        """Returns the squared norm of the sum of all differences, by metric."""
        received = [records.receive(sums.content, self.device) for sums in request.sums]
        return {key: float(total.square().sum()) for key, total in records.merge(received, summed=True).items()}

    def finish(self, request: FinishPeersRequest) -> dict[str, np.ndarray]:
        """Returns the peers' models as flat vectors `w` and `buffers`, with a row for each peer."""
        vectors = records.Stack()
        for asked in request.peers:
            own = self._personal(asked, request.version)
            vectors.add({"w": own.w, "buffers": own.buffers}, 1.0)
        return records.send(vectors.record)
