"""What clients train in a run with a server, as jobs of its pool. It knows which client's state is where."""

from __future__ import annotations

from actors import Job, Pool, Value, finished
from raysim.scenario import Scenario
from raysim.workers.protocol import CLIENT, Described, Member, WorkPerClient
from raysim.world import Work
from raysim.world.server_timeline import Dispatched, Stepped


class Training:
    """Submits clients' training. Their states are values of the pool: none of them passes through here."""

    def __init__(
        self, scenario: Scenario, pool: Pool, described: Described, messages: dict[int, Value], fresh: Value
    ) -> None:
        """messages: what clients are sent, by version; its owner keeps it up to date. fresh: a client's first state."""
        self.states: dict[int, Value] = {}  # by client, after the last step that used its update
        self._scenario, self._pool, self._described = scenario, pool, described
        self._messages, self._fresh = messages, fresh
        self._begun: dict[int, Job] = {}  # by dispatch: of one client, trained before it is known what becomes of it
        self._next: dict[int, Value] = {}  # by client, after its last update that a step has used or may use yet

    def states_of(self, clients: list[int]) -> list[Value]:
        """After the last step that used their updates; none where clients keep no state."""
        return [self.states.get(client, self._fresh) for client in clients] if self._described.stateful else []

    # --- before it is known what becomes of it ------------------------------------------------------------------------

    def begin(self, dispatched: Dispatched) -> None:
        """Trains a client at once, for the time of its arrival depends on the work done.

        Its update stays by itself: with which weight it will be summed, if at all, is not known yet.
        """
        client = dispatched.client
        states = [self._next.get(client, self._fresh)] if self._described.stateful else []
        member = Member(client, dispatched.number, dispatched.version, message=0, weight=1.0, share=1.0)
        job = self._submit((member,), [dispatched.version], states, (dispatched.version + 1, 0), summed=False)
        self._begun[dispatched.serial] = job
        if states:
            self._next[client] = job.values[1]

    def worked(self, dispatched: Dispatched, cost: WorkPerClient) -> Work:
        """The work of a client that was begun, once it is done. cost: of an update."""
        (row,) = finished(self._pool, self._begun[dispatched.serial]).result
        return Work(cost.flops_per_sample * row["samples_seen"], cost.down_bytes, cost.up_bytes)

    def drop(self, dispatched: Dispatched) -> None:
        """Forgets what a client did, if it was begun: no step will use it."""
        job = self._begun.pop(dispatched.serial, None)
        if job is not None and self._described.stateful:
            self._next[dispatched.client] = self.states.get(dispatched.client, self._fresh)

    def take(self, stepped: Stepped, weights: list[float] | None) -> tuple[list[Job], list[tuple[float, float]]]:
        """The jobs of a step's members that were begun, and with which weights updates and buffers are summed."""
        samples = sum(arrival.samples for arrival in stepped.arrivals)
        shares = [arrival.samples / samples for arrival in stepped.arrivals]
        jobs = [self._begun.pop(dispatched.serial) for dispatched in stepped.members]
        if self._described.stateful:
            for dispatched, job in zip(stepped.members, jobs, strict=True):
                self.states[dispatched.client] = job.values[1]
        return jobs, list(zip(weights or [1.0] * len(jobs), shares, strict=True))

    # --- for a step ---------------------------------------------------------------------------------------------------

    def train(self, stepped: Stepped, weights: list[float] | None) -> list[Job]:
        """Trains the members of a step, a job a chunk. weights: of their updates in the sum; None: they are stacked."""
        chunks, place = [], 0
        for members in chunk(stepped.members, self._scenario.resources.chunk):
            chosen = None if weights is None else weights[place : place + len(members)]
            chunks.append(self._train(stepped, members, chosen))
            place += len(members)
        return chunks

    def _train(self, stepped: Stepped, members: list[Dispatched], weights: list[float] | None) -> Job:
        versions = sorted({member.version for member in members})
        samples = sum(arrival.samples for arrival in stepped.arrivals)
        spec = tuple(
            Member(
                client=d.client,
                number=d.number,
                version=d.version,
                message=versions.index(d.version),
                weight=1.0 if weights is None else weights[place],
                share=int(self._described.samples[d.client]) / samples,
            )
            for place, d in enumerate(members)
        )
        states = self.states_of([d.client for d in members])
        job = self._submit(spec, versions, states, (stepped.version, 0), summed=weights is not None)
        for dispatched, state in zip(members, job.values[1:], strict=False):
            self.states[dispatched.client] = state
        return job

    def _submit(
        self,
        members: tuple[Member, ...],
        versions: list[int],
        states: list[Value],
        priority: tuple[int, ...],
        *,
        summed: bool,
    ) -> Job:
        return self._pool.submit(
            CLIENT,
            "train",
            members,
            summed,
            len(versions),
            *(self._messages[version] for version in versions),
            *states,
            values=1 + len(states),
            priority=priority,
            label=f"train for version {priority[0]}",
        )


def chunk(members: tuple[Dispatched, ...], size: int) -> list[list[Dispatched]]:
    """Consecutive members, `size` of them or fewer; cut where a client comes again, whose state is then another."""
    chunks: list[list[Dispatched]] = []
    for member in members:
        full = not chunks or len(chunks[-1]) == size
        if full or any(member.client == other.client for other in chunks[-1]):
            chunks.append([])
        chunks[-1].append(member)
    return chunks
