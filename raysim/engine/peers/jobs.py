"""What a run of peers hands to its pool: mixing and training, evaluation. It knows whose state and message is where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from actors import Group, Job, Pool, Value, finished
from raysim.engine.peers.pending import EvaluationTasks, RoundTasks, Trained
from raysim.rng import generator
from raysim.scenario import Scenario
from raysim.workers.peers_protocol import At, MakePeersWorker, Member, Turn, WorkPerPeer
from raysim.workers.protocol import CLIENT, Described
from raysim.world.peers_timeline import Exchanged, Mixed, Next

COMPARED = 25  # peers in a task of the consensus distance; fixed, for sums over peers depend on it

Item = TypeVar("Item")


class Place(NamedTuple):
    """Of something of a peer: a value with a row for each of several peers."""

    value: Value
    row: int


class Arguments:
    """The values that a job gets, each once."""

    def __init__(self) -> None:
        self._numbers: dict[Value, int] = {}

    @property
    def values(self) -> list[Value]:
        return list(self._numbers)

    def at(self, place: Place) -> At:
        """Where the job finds it."""
        return At(self._numbers.setdefault(place.value, len(self._numbers)), place.row)


class PeersTasks:
    """Submits a run's jobs. What belongs to peers are values of the pool: none of it passes through here."""

    def __init__(self, scenario: Scenario, pool: Pool) -> None:
        self.scenario, self.pool = scenario, pool
        self.peers = scenario.data.clients
        # So many tasks are handed out ahead of what is done: enough that no worker waits.
        self.ahead = 6 * scenario.resources.client_actors
        self._drafts: dict[int, Place] = {}  # by peer, for its next mix
        self._states: dict[int, Place] = {}  # by peer, the last that was kept
        self._messages: dict[tuple[int, int], Place] = {}  # by peer and number
        self._trained: dict[int, Trained] = {}  # by peer, for its next mix

    # --- set-up -------------------------------------------------------------------------------------------------------

    def start(self) -> Described:
        """Makes the workers and loads the data."""
        wanted = self.scenario.resources
        factory = MakePeersWorker(self.scenario, wanted.gpus_per_client)
        self.pool.start(Group(CLIENT, factory, wanted.client_actors, wanted.cpus_per_client, wanted.gpus_per_client))
        load = finished(self.pool, self.pool.submit(CLIENT, "load", values=1, label="load data"))
        described: Described = load.result
        (federation,) = load.values
        self.pool.broadcast(CLIENT, "attach", federation)
        drawn = generator(self.scenario.seed, "evaluated clients").permutation(self.peers)
        number = self.scenario.run.evaluate_clients
        self._evaluated = sorted(drawn[: None if number == "all" else number].tolist())
        return described

    def work(self) -> WorkPerPeer:
        """What a peer's training and messages cost."""
        job = finished(self.pool, self.pool.submit(CLIENT, "work", label="measure the work of a peer"))
        cost: WorkPerPeer = job.result
        return cost

    # --- rounds -------------------------------------------------------------------------------------------------------

    def begin(self, start: Sequence[Next]) -> None:
        """First states and trainings. start: of each peer."""
        needed = [peer for peer, first in enumerate(start) if any(first)]
        for peers in _chunks(needed, self.scenario.resources.chunk):
            turns = tuple(Turn(peer, 0, None, None, (), (), *start[peer]) for peer in peers)
            self._submit(turns, [], (0,), "first training")

    def exchange(self, exchanged: Exchanged) -> RoundTasks:
        """Lets peers mix, and then train for their next mix."""
        chunks = []
        for members in cut(exchanged.mixed, self.scenario.resources.chunk):
            arguments = Arguments()
            turns = tuple(self._turn(mixed, arguments) for mixed in members)
            trained = [self._trained[mixed.peer] for mixed in members]
            job = self._submit(turns, arguments.values, (exchanged.version,), f"mix of round {exchanged.round}")
            chunks.append((job, trained))
        return RoundTasks(chunks)

    def _turn(self, mixed: Mixed, arguments: Arguments) -> Turn:
        return Turn(
            mixed.peer,
            mixed.number + 1,
            arguments.at(self._drafts.pop(mixed.peer)),
            arguments.at(self._messages[mixed.peer, mixed.number]),
            tuple(arguments.at(self._messages[heard.peer, heard.number]) for heard in mixed.inbox),
            tuple(heard.weight for heard in mixed.inbox),
            *mixed.next,
        )

    def _submit(self, turns: tuple[Turn, ...], values: list[Value], priority: tuple[int, ...], label: str) -> Job:
        job = self.pool.submit(CLIENT, "mix", turns, *values, values=2, priority=priority, label=label)
        own, messages = job.values
        for row, turn in enumerate(turns):
            if turn.kept:
                self._states[turn.peer] = Place(own, row)
            if turn.trains:
                self._drafts[turn.peer] = Place(own, row)
                self._messages[turn.peer, turn.mixes] = Place(messages, row)
                self._trained[turn.peer] = Trained(job, row)
        return job

    def forget(self, live: set[tuple[int, int]]) -> None:
        """Lets go of the messages that nobody will mix any more."""
        for key in self._messages.keys() - live:
            del self._messages[key]

    # --- evaluation ---------------------------------------------------------------------------------------------------

    def evaluate(self, exchanged: Exchanged) -> EvaluationTasks:
        """Evaluates peers, and how far all of them are apart."""
        options: dict[str, Any] = {"priority": (exchanged.version + 1,), "label": f"evaluate round {exchanged.round}"}
        members = []
        for peers in _chunks(self._evaluated, self.scenario.resources.chunk):
            spec, values = self._members(peers)
            job = self.pool.submit(CLIENT, "evaluate", exchanged.version, spec, *values, **options)
            members.append((peers, job))
        compared = []
        for peers in _chunks(range(self.peers), COMPARED):
            spec, values = self._members([0, *peers])  # with the first as origin, lest large numbers cancel
            compared.append(self.pool.submit(CLIENT, "compare", exchanged.version, spec, *values, values=1, **options))
        sums = [job.values[0] for job in compared]
        consensus = self.pool.submit(CLIENT, "consensus", *sums, **options)
        return EvaluationTasks(members, compared, consensus)

    def _members(self, peers: Sequence[int]) -> tuple[tuple[Member, ...], list[Value]]:
        arguments = Arguments()
        spec = tuple(Member(peer, arguments.at(self._states[peer])) for peer in peers)
        return spec, arguments.values

    def finish(self) -> dict[str, np.ndarray]:
        """The final models' flat vectors, one below the other."""
        parts = []
        for peers in _chunks(range(self.peers), COMPARED):
            spec, values = self._members(peers)
            job = self.pool.submit(
                CLIENT, "finish", self.scenario.run.rounds, spec, *values, label="fetch final models"
            )
            parts.append(finished(self.pool, job).result)
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[first : first + size] for first in range(0, len(items), size))


def cut(mixed: Sequence[Mixed], size: int) -> list[list[Mixed]]:
    """Consecutive mixes, `size` of them or fewer; cut where one needs what another one of the chunk makes."""
    chunks: list[list[Mixed]] = []
    made: set[tuple[int, int]] = set()  # messages, by peer and number
    for mix in mixed:
        needed = {(mix.peer, mix.number), *((heard.peer, heard.number) for heard in mix.inbox)}
        if not chunks or len(chunks[-1]) == size or needed & made:
            chunks.append([])
            made = set()
        chunks[-1].append(mix)
        made.add((mix.peer, mix.number + 1))
    return chunks
