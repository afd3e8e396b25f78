"""Submits the training of clients in a run with a server."""

import math
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from actors import Job, Pool, Value, finished
from raysim.algorithms import Central
from raysim.engine.simulation import Kept
from raysim.parts.errors import BadInput
from raysim.scenario import Scenario
from raysim.terms import Missed, ModelKey, Weight, Wire
from raysim.workers.replies import ClientWire, TrainedMember
from raysim.workers.requests import ChunkMember, TrainedChunk, TrainRequest, shares
from raysim.workers.workshop import CLIENT
from raysim.world.server_happening import Dispatched, Stepped

TrainJob = Job[list[TrainedMember], TrainedChunk]


class WorkDone(NamedTuple):
    """The part of a client's training that a timeline may depend on."""

    samples_seen: float  # with gradients, with repeats, plus a third of those that were only predicted
    loss: float | None  # of the first mini-batch, before training; None if the algorithm logs none


class Uses:
    """Counts the updates that steps have used, by group of clients. A timeline tells it of its steps.

    It counts only for algorithms with a `traffic` of their own.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._counts = type(scenario.central).traffic is not Central.traffic
        self._groups = scenario.groups if self._counts else None
        self._until: list[Counter[str | None]] = [Counter()]  # by version: all that were used to make it

    def stepped(self, stepped: Stepped) -> None:
        """Counts the updates of a step."""
        if self._groups is not None:
            used = Counter(self._groups.name(member.client) for member in stepped.members)
            self._until.append(self._until[-1] + used)

    def missed(self, had: int | None, version: int) -> Missed:
        """Returns what a client missed that is sent a version, and had received another one; None: it had none."""
        versions = None if had is None else version - had
        counts = self._until[version] - self._until[had or 0] if self._groups is not None else {}
        return Missed(dict(counts), versions)


class Training:
    """Submits training jobs, and remembers which value holds which client's state. It never sees tensors."""

    def __init__(
        self,
        scenario: Scenario,
        pool: Pool,
        messages: dict[int, Value[Wire]],
        fresh: Mapping[ModelKey, Value[ClientWire]],
        keys: Mapping[int, str],
    ) -> None:
        """messages: what clients are sent, by version; the caller updates it. fresh: the first state of a client with
        the model of each key; {} if clients keep no state. keys: as `ClientGroups.keys` returns them."""
        self._states: dict[int, Value[ClientWire]] = {}  # by client: after the last update of it that a step used
        self._scenario, self._pool = scenario, pool
        self.uses = Uses(scenario)  # that of the timeline that is followed
        self._messages, self._fresh, self._keys = messages, fresh, keys
        self._begun: dict[int, TrainJob] = {}  # by dispatch: training that began before the arrival was known
        self._known: dict[int, WorkDone] = {}  # by dispatch: what the timeline has asked for
        self._next: dict[int, Value[ClientWire]] = {}  # by client: its newest, even if no step has used that update yet

    def states_of(self, clients: list[int]) -> tuple[Value[ClientWire], ...]:
        """Returns clients' states, each after the last update that a step used; () if clients keep no state."""
        return tuple(state for state in map(self._state, clients) if state)

    def _state(self, client: int) -> Value[ClientWire] | None:
        return self._states.get(client, self._first(client))

    def _first(self, client: int) -> Value[ClientWire] | None:
        return self._fresh.get(self._keys.get(client, 1.0))

    # --- checkpoints --------------------------------------------------------------------------------------------------

    @property
    def measurements(self) -> int:
        """How many dispatches the timeline has asked about so far, to learn what was trained."""
        return len(self._known)

    def memory(self, measurements: int) -> dict[str, Any]:
        """Returns what was measured of the first dispatches that the timeline asked about, as plain data.

        measurements: the number of these dispatches.
        """
        return {"measured": [[serial, *of_it] for serial, of_it in islice(self._known.items(), measurements)]}

    def go_back(self, states: dict[int, Value[ClientWire]]) -> None:
        """Forgets training that has begun. states: clients' states by client, which the next updates start from."""
        self._begun.clear()
        self._states, self._next = states, dict(states)

    def recall(self, memory: dict[str, Any]) -> None:
        """Goes on from what `memory` returned."""
        self._known = {serial: WorkDone(*of_it) for serial, *of_it in memory["measured"]}

    def kept(self, stepped: Stepped) -> dict[str, Kept]:
        """Returns the states of a step's members after it, by their keys in checkpoints."""
        clients = {dispatched.client for dispatched in stepped.members} if self._fresh else ()
        return {f"client/{client}": Kept(self._states[client]) for client in clients}

    # --- at dispatch, if the timeline depends on the work done --------------------------------------------------------

    def begin(self, dispatched: Dispatched) -> None:
        """Trains a client right after its dispatch, because the timeline depends on the work done.

        Its update is not summed with others yet, because its weight is not known, nor whether a step will use it.
        """
        client = dispatched.client
        state = self._next.get(client, self._first(client))
        member = self._member(dispatched, state, weight=1.0, share=1.0)
        job = self._submit(TrainRequest(members=(member,), summed=False), (dispatched.version + 1, 0))
        self._begun[dispatched.serial] = job
        if state:
            (self._next[client],) = job.left.states

    def measured(self, dispatched: Dispatched) -> float:
        """Waits until a client that was begun has trained. Returns the samples that it saw."""
        return self._measure(dispatched).samples_seen

    def loss(self, dispatched: Dispatched) -> float:
        """Waits until a client that was begun has trained. Returns its loss before that, infinite if not finite.

        Raises BadInput if the algorithm logs none.
        """
        loss = self._measure(dispatched).loss
        if loss is None:
            names = self._scenario.world.dispatch.policy.name, self._scenario.algorithm.name
            text = "{} needs the losses of clients, and {} logs no loss_before; take another policy".format(*names)
            raise BadInput("world.dispatch.policy", text)
        return loss if math.isfinite(loss) else math.inf

    def _measure(self, dispatched: Dispatched) -> WorkDone:
        serial = dispatched.serial
        if serial not in self._known:
            (trained,) = finished(self._pool, self._begun[serial]).result
            self._known[serial] = WorkDone(trained.passes, trained.numbers.columns.get("loss_before"))
        return self._known[serial]

    def drop(self, dispatched: Dispatched) -> None:
        """Forgets what a client trained, if it was begun, because no step will use it."""
        begun = self._begun.pop(dispatched.serial, None)
        if begun and (state := self._state(dispatched.client)):
            self._next[dispatched.client] = state

    def take(self, stepped: Stepped) -> list[TrainJob]:
        """Returns the jobs of a step's members, which were all begun."""
        jobs = [self._begun.pop(dispatched.serial) for dispatched in stepped.members]
        if self._fresh:
            for dispatched, job in zip(stepped.members, jobs, strict=True):
                (self._states[dispatched.client],) = job.left.states
        return jobs

    # --- for a step ---------------------------------------------------------------------------------------------------

    def train(self, stepped: Stepped, weights: list[Weight] | None) -> list[TrainJob]:
        """Trains the members of a step, with a job for each chunk.

        weights: the weights with which their updates are summed; None: the updates are stacked instead.
        """
        factors = zip(weights or [1.0] * len(stepped.members), shares(stepped.arrivals), strict=True)
        jobs = []
        for dispatches in chunk(stepped.members, self._scenario.resources.chunk):
            members = tuple(
                self._member(dispatched, self._state(dispatched.client), weight=weight, share=share)
                for dispatched, (weight, share) in zip(dispatches, islice(factors, len(dispatches)), strict=True)
            )
            job = self._submit(TrainRequest(members=members, summed=weights is not None), (stepped.version, 0))
            for dispatched, state in zip(dispatches, job.left.states, strict=bool(self._fresh)):
                self._states[dispatched.client] = state
            jobs.append(job)
        return jobs

    def _member(
        self, dispatched: Dispatched, state: Value[ClientWire] | None, *, weight: Weight, share: float
    ) -> ChunkMember:
        version = dispatched.version
        return ChunkMember(
            dispatched.client,
            dispatched.number,
            version,
            dispatched.moment,
            self._messages[version],
            state,
            weight,
            share,
            self.uses.missed(dispatched.had, version),
            dispatched.level,
        )

    def _submit(self, request: TrainRequest, priority: tuple[int, ...]) -> TrainJob:
        return self._pool.submit(CLIENT, request, priority=priority, label=f"train for version {priority[0]}")


def chunk(members: tuple[Dispatched, ...], size: int) -> list[list[Dispatched]]:
    """Cuts members into chunks of at most `size` in order. No client is twice in a chunk, because its state changes."""
    chunks: list[list[Dispatched]] = []
    clients: set[int] = set()  # of the last chunk
    for member in members:
        if not chunks or len(chunks[-1]) == size or member.client in clients:
            chunks.append([])
            clients = set()
        chunks[-1].append(member)
        clients.add(member.client)
    return chunks
