"""Submits the jobs of a run of peers: mixing, training and evaluation."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from actors import Job, Pool, finished
from raysim.engine.checkpoint import Checkpoint
from raysim.engine.peers.pending import PendingPeersEvaluation, PendingRound, TrainedAt
from raysim.engine.simulation import Committed, Kept, load
from raysim.parts.rng import generator
from raysim.scenario import Scenario
from raysim.terms import ClientState, Moment, Wire
from raysim.workers.peer_requests import (
    CompareRequest,
    ConsensusRequest,
    EvaluatePeersRequest,
    FinishPeersRequest,
    MixRequest,
    Mixture,
    Own,
    PeerState,
    Place,
    Turn,
)
from raysim.workers.replies import MixedPeer, WorkCost
from raysim.workers.workshop import CLIENT, CostRequest
from raysim.world.peers_happening import Exchanged, Joined, Mixed, Next

COMPARED = 25  # peers in a job that measures the consensus distance; fixed, because it decides the bits of sums

Item = TypeVar("Item")


class PeersJobs:
    """Submits jobs, and remembers which values hold the states and messages of peers. It never sees their tensors."""

    def __init__(self, scenario: Scenario, pool: Pool) -> None:
        """Loads the data. The pool's workers must have been started. Raises JobFailed if loading fails."""
        self.scenario, self.pool = scenario, pool
        self.peers = scenario.data.clients
        self.described = load(scenario, pool, CLIENT)
        drawn = generator(scenario.seed, "evaluated clients").permutation(self.peers)
        self._drawn: list[int] = drawn.tolist()  # peers in the order in which they are chosen to be evaluated
        self._drafts: dict[int, Place[Own]] = {}  # by peer: the draft for its next mix
        self._states: dict[int, Place[Own]] = {}  # by peer: the last state that was kept
        self._messages: dict[tuple[int, int], Place[Wire]] = {}  # by peer and number of the message
        self._trained: dict[int, TrainedAt] = {}  # by peer: its training for its next mix
        self.now = Moment()  # the end of the last round that was handed out

    def cost(self) -> WorkCost:
        """Measures what a peer's training, mixing and messages cost."""
        job = self.pool.submit(CLIENT, CostRequest(), label="measure the cost of a peer")
        return finished(self.pool, job).result

    # --- rounds -------------------------------------------------------------------------------------------------------

    def begin(self, start: Sequence[Next]) -> None:
        """Gives peers their first states, and trains them. start: what is done with each peer's first state."""
        needed = [peer for peer, first in enumerate(start) if any(first)]
        for peers in _chunks(needed, self.scenario.resources.chunk):
            turns = tuple(Turn(peer, 0, start[peer].trains, start[peer].kept) for peer in peers)
            self._submit(turns, (0,), "first training")

    def exchange(self, exchanged: Exchanged) -> PendingRound:
        """Lets peers mix, and then train for their next mix. Evaluates the mixed models if the round asks for it."""
        self.now = exchanged.moment
        chunks = []
        for members in cut(exchanged.changes, self.scenario.resources.chunk):
            turns = tuple(turn for one in members for turn in self._turns(one, exchanged))
            trained = {row: self._trained[turn.peer] for row, turn in enumerate(turns) if turn.draft}
            chunks.append((self._submit(turns, (exchanged.version,), f"mix of round {exchanged.round}"), trained))
        return PendingRound(chunks, self._evaluate(exchanged) if exchanged.evaluated else None)

    def _turns(self, mixed: Mixed | Joined, exchanged: Exchanged) -> Iterator[Turn]:
        if isinstance(mixed, Joined):
            now = Moment(exchanged.round, 0, mixed.time)
            copied = None if mixed.of is None else PeerState(mixed.of, self._states[mixed.of], now)
            yield Turn(mixed.peer, 0, *mixed.next, mixes_at=now, trains_at=now, joins=True, copied=copied)
            return
        # Where all wait for all, the round is over once they have mixed; else as many mixes make a round as there are
        # peers, and the next training begins within it.
        over = exchanged.version if self.scenario.world.synchronous else exchanged.round
        inbox = tuple(self._messages[heard.peer, heard.number] for heard in mixed.inbox)
        message = self._messages[mixed.peer, mixed.number]
        yield Turn(
            peer=mixed.peer,
            mixes=mixed.number + 1,
            draft=self._drafts.pop(mixed.peer),
            message=message,
            inbox=inbox,
            weights=tuple(heard.weight for heard in mixed.inbox),
            shares=tuple(heard.share for heard in mixed.inbox),
            kept_share=mixed.kept,
            mixes_at=Moment(exchanged.round, mixed.number, mixed.time),
            trains_at=Moment(over, mixed.number + 1, mixed.time),
            trains=mixed.next.trains,
            kept=mixed.next.kept,
        )
        if mixed.answer:
            peer, number, kept = mixed.answer
            at, weights = Moment(exchanged.round, number, mixed.time), (mixed.inbox[0].weight,)
            yield Turn(peer, number + 1, False, kept, None, inbox[0], (message,), weights, at)

    def _submit(self, turns: tuple[Turn, ...], priority: tuple[int, ...], label: str) -> Job[list[MixedPeer], Mixture]:
        job = self.pool.submit(CLIENT, MixRequest(turns), priority=priority, label=label)
        own, messages = job.left
        for row, turn in enumerate(turns):
            if turn.kept:
                self._states[turn.peer] = Place(own, row)
            if turn.trains:
                self._drafts[turn.peer] = Place(own, row)
                self._trained[turn.peer] = TrainedAt(job, row)
            if turn.trains or self.scenario.peer.sends_state:
                self._messages[turn.peer, turn.mixes] = Place(messages, row)
        return job

    def forget(self, live: set[tuple[int, int]]) -> list[str]:
        """Frees the messages that no peer will mix any more, and returns their keys in checkpoints.

        live: the others, by peer and number of the message.
        """
        gone = self._messages.keys() - live
        for key in gone:
            del self._messages[key]
        return [f"message/{peer}/{number}" for peer, number in gone]

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def kept(self, made: Sequence[tuple[int, int]]) -> dict[str, Kept]:
        """Returns records by their keys in checkpoints: what was left by the jobs that were submitted last.

        made: the messages that these jobs make, by peer and number of the message.
        """
        records = {}
        for peer in {peer for peer, _ in made}:
            if state := self._states.get(peer):
                records[f"state/{peer}"] = Kept(state.value, (state.row, 1))
            if draft := self._drafts.get(peer):
                records[f"draft/{peer}"] = Kept(draft.value, (draft.row, 0), self._trained[peer].note)
        for peer, number in made:
            if message := self._messages.get((peer, number)):
                records[f"message/{peer}/{number}"] = Kept(message.value, (message.row,))
        return records

    def recall(self, checkpoint: Checkpoint) -> Committed:
        """Goes on from the records of a checkpoint, and returns them."""
        committed = {}
        for key, record in checkpoint.records().items():
            kind, *numbers = key.split("/")
            if kind == "draft":
                trained = self._trained[int(numbers[0])] = TrainedAt.noted(checkpoint.files[key][1])
                committed[key] = Kept(
                    self.pool.put((Own(ClientState.of_flat(record), ClientState()),)), (0, 0), trained.note
                )
                self._drafts[int(numbers[0])] = _place_of(committed[key])
            elif kind == "message":
                committed[key] = Kept(self.pool.put((record,)), (0,))
                self._messages[int(numbers[0]), int(numbers[1])] = _place_of(committed[key])
            else:  # states, also those of the best model
                committed[key] = Kept(self.pool.put((Own(ClientState(), ClientState.of_flat(record)),)), (0, 1))
        found = Committed(committed)
        self.go_back(found, self.now)
        return found

    def go_back(self, committed: Committed, now: Moment) -> None:
        """Takes the peers' states of the records, and forgets what has been submitted since. now: the end of the last
        round before that."""
        for key, kept in committed.records.items():
            if key.startswith("state/"):
                self._states[int(key.removeprefix("state/"))] = _place_of(kept)
        self.now = now

    # --- evaluation ---------------------------------------------------------------------------------------------------

    def _evaluate(self, exchanged: Exchanged) -> PendingPeersEvaluation:
        """Evaluates some of the peers that are there, and measures how far the models of all of these are apart."""
        version, priority, label = exchanged.version, (exchanged.version + 1,), f"evaluate round {exchanged.round}"
        evaluated, number, present = [], self.scenario.run.evaluate_clients, set(exchanged.present or ())
        there = range(self.peers) if exchanged.present is None else exchanged.present
        chosen = [peer for peer in self._drawn if exchanged.present is None or peer in present]
        for peers in _chunks(sorted(chosen[: None if number == "all" else number]), self.scenario.resources.chunk):
            request = EvaluatePeersRequest(version, self._states_of(peers))
            evaluated.append((peers, self.pool.submit(CLIENT, request, priority=priority, label=label)))
        compared = []
        for peers in _chunks(there, COMPARED):
            asked = self._states_of([there[0], *peers])  # distances from a peer, so that no large numbers cancel out
            job = self.pool.submit(CLIENT, CompareRequest(version, asked), priority=priority, label=label)
            compared.append(job)
        sums = ConsensusRequest(tuple(job.left for job in compared))
        return PendingPeersEvaluation(
            evaluated, compared, self.pool.submit(CLIENT, sums, priority=priority, label=label)
        )

    def _states_of(self, peers: Sequence[int]) -> tuple[PeerState, ...]:
        return tuple(PeerState(peer, self._states[peer], self.now) for peer in peers)

    def final_models(self) -> dict[str, np.ndarray]:
        """Returns the final models as flat vectors `w` and `buffers`, with a row for each peer."""
        return self._models_of(self._states, self.now)

    def models_in(self, kept: Mapping[str, Kept], moment: Moment) -> dict[str, np.ndarray]:
        """Returns the models of the peers' states in records, as those of a moment, as `final_models` does."""
        return self._models_of({peer: _place_of(kept[f"state/{peer}"]) for peer in range(self.peers)}, moment)

    def _models_of(self, states: Mapping[int, Place[Own]], moment: Moment) -> dict[str, np.ndarray]:
        parts = []
        for peers in _chunks(range(self.peers), COMPARED):
            asked = tuple(PeerState(peer, states[peer], moment) for peer in peers)
            request = FinishPeersRequest(moment.version, asked)
            parts.append(finished(self.pool, self.pool.submit(CLIENT, request, label="fetch final models")).result)
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _place_of(kept: Kept) -> Place[Any]:
    return Place(kept.value, kept.place[0])


def _chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[first : first + size] for first in range(0, len(items), size))


def cut(changes: Sequence[Mixed | Joined], size: int) -> list[list[Mixed | Joined]]:
    """Cuts mixes into chunks of at most `size` in order. No mix needs a message that its own chunk makes, and no peer
    that joins copies a state that it makes."""
    chunks: list[list[Mixed | Joined]] = []
    made: set[tuple[int, int]] = set()  # messages that the chunk makes, by peer and number
    for mix in changes:
        if isinstance(mix, Joined):
            needed = {key for key in made if key[0] == mix.of}
        else:
            needed = {*mix.changed, *((heard.peer, heard.number) for heard in mix.inbox)}
        if not chunks or len(chunks[-1]) == size or needed & made:
            chunks.append([])
            made = set()
        chunks[-1].append(mix)
        made.update((peer, number + 1) for peer, number in mix.changed)
    return chunks
