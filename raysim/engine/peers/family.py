"""Runs without a server: peers train, and mix their models with those of their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from actors import Group, Pool, Value
from raysim.data import federate
from raysim.engine import rows
from raysim.engine.family import Final
from raysim.engine.peers.jobs import PeersJobs
from raysim.engine.peers.pending import PendingPeersEvaluation, PendingRound
from raysim.engine.peers.recorder import PeersRecorder, spread
from raysim.engine.progress import Mark, Stopwatch
from raysim.scenario import Scenario
from raysim.workers.replies import PeerCost
from raysim.workers.requests import CLIENT
from raysim.workers.workshop import BecomePeers, OpenWorkshop, Workshop
from raysim.world import Cost
from raysim.world.peers_timeline import Exchanged, PeersTimeline
from results import Writer


@dataclass(frozen=True)
class PeersFamily:
    """How algorithms without a server are run."""

    scenario: Scenario

    @property
    def groups(self) -> list[Group]:
        wanted = self.scenario.resources
        factory = OpenWorkshop(self.scenario, wanted.gpus_per_client)
        return [Group(CLIENT, factory, wanted.client_actors, wanted.cpus_per_client, wanted.gpus_per_client)]

    def recorder(self, writer: Writer) -> PeersRecorder:
        return PeersRecorder(writer, synchronous=self.scenario.world.synchronous)

    def start(self, pool: Pool, recorder: PeersRecorder) -> PeersSimulation:
        """Starts a run. Raises JobFailed if that fails, and ValueError if a peer has no samples to train on."""
        for group in self.groups:
            pool.start(group)
        return PeersSimulation(self.scenario, PeersJobs(self.scenario, pool), recorder)

    def dry(self, recorder: PeersRecorder) -> None:
        """Writes who mixes when and which messages are lost, and trains nothing."""
        scenario = self.scenario
        federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
        recorder.held(federation.partition_table(), federation.samples)

        def cost() -> PeerCost:
            return BecomePeers(Value(federation)).build(Workshop(scenario, 0.0)).cost()

        for exchanged in new_timeline(scenario, federation.samples, cost):
            recorder.exchanged(exchanged)


class PeersSimulation:
    """A run of peers that has started."""

    def __init__(self, scenario: Scenario, jobs: PeersJobs, recorder: PeersRecorder) -> None:
        self.scenario, self.described = scenario, jobs.described
        self.ahead = 6 * scenario.resources.client_actors
        self._jobs, self._recorder = jobs, recorder
        recorder.held(self.described.partition, self.described.samples)
        self._timeline = new_timeline(scenario, self.described.samples, jobs.cost)
        self.stopwatch = Stopwatch.start()

    def happenings(self) -> Iterator[Exchanged]:
        self._jobs.begin(self._timeline.start)
        return iter(self._timeline)

    def hand_out(self, happening: Exchanged) -> PendingRound:
        pending = self._jobs.exchange(happening)
        self._jobs.forget(self._timeline.live)
        return pending

    def record(self, happening: Exchanged, pending: PendingRound | None) -> Mark:
        assert pending is not None  # every round has jobs
        measured = {"seconds": pending.mixing_s, "elapsed_s": self.stopwatch.seconds}
        self._recorder.exchanged(happening, pending.trained, measured)
        self._recorder.tasks(happening, pending.mixes, self.stopwatch.began)
        metrics = self._record_evaluation(happening, pending.evaluation) if pending.evaluation else None
        in_flight = 0 if self.scenario.world.synchronous else self._jobs.peers
        return Mark(happening.version, happening.time, in_flight, metrics)

    def _record_evaluation(self, exchanged: Exchanged, pending: PendingPeersEvaluation) -> dict[str, float]:
        """Writes an evaluation. Returns the peers' metrics on the first split, and how far their models are apart."""
        peer_sums, apart = pending.peer_sums, pending.apart
        self._recorder.evaluated(exchanged, peer_sums, apart)
        self._recorder.tasks(exchanged, pending.jobs, self.stopwatch.began)
        first = self.scenario.run.evaluate_on[0]
        return spread([rows.means(splits[first]) for _, splits in peer_sums]) | apart

    def finish(self) -> Final:
        return Final(self._jobs.final_models(), None)


def new_timeline(scenario: Scenario, samples: NDArray[np.int64], measure: Callable[[], PeerCost]) -> PeersTimeline:
    """Returns the run's timeline. measure: returns the cost of a peer; called only if delays depend on it.

    Raises ValueError if a peer has no samples to train on.
    """
    if without := np.flatnonzero(samples == 0).tolist():
        raise ValueError(
            f"data.partition: every peer must hold a sample to train on, got none for {len(without)} peers, such as "
            f"{without[:5]}; take fewer data.clients, or another partition"
        )
    assert scenario.topology is not None
    cost = None
    if scenario.world.delay.needs_cost:
        peer_cost = measure()

        def cost(peer: int, neighbours: int) -> Cost:
            trained = 3 * scenario.local.total_samples(int(samples[peer]))  # a backward pass costs two forward passes
            passes = trained + peer_cost.passes + neighbours * peer_cost.passes_per_neighbour
            sent = neighbours * peer_cost.message_bytes
            return Cost(peer_cost.forward_flops * passes, sent, sent)

    run, peers = scenario.run, len(samples)
    return PeersTimeline(scenario.world, scenario.topology, peers, run.rounds, run.evaluate_every, scenario.seed, cost)
