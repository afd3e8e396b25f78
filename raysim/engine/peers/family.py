"""Runs without a server: peers train, and mix their models with those of their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from actors import Group, Pool, Value
from raysim.data import Federation
from raysim.engine import groups
from raysim.engine.checkpoint import Checkpoint
from raysim.engine.peers.jobs import PeersJobs
from raysim.engine.peers.recorder import PeersRecorder
from raysim.engine.peers.simulation import PeersSimulation
from raysim.engine.peers.timeline import new_timeline
from raysim.scenario import Scenario
from raysim.workers.replies import PeerCost
from raysim.workers.workshop import BecomePeers, Workshop
from raysim.world.peers_timeline import Exchanged
from results import Writer

if TYPE_CHECKING:
    from raysim.workers.peers import PeersWorker


@dataclass(frozen=True)
class PeersFamily:
    """How algorithms without a server are run."""

    scenario: Scenario

    @property
    def groups(self) -> list[Group]:
        return [groups.loader(self.scenario), groups.clients(self.scenario)]

    def recorder(self, writer: Writer) -> PeersRecorder:
        return PeersRecorder(writer, self.scenario.run, synchronous=self.scenario.world.synchronous)

    def start(self, pool: Pool, recorder: PeersRecorder, checkpoint: Checkpoint | None) -> PeersSimulation:
        """Starts a run. Raises JobFailed if that fails, and ValueError if a peer has no samples to train on."""
        for group in self.groups:
            pool.start(group)
        return PeersSimulation(self.scenario, PeersJobs(self.scenario, pool), recorder, checkpoint)

    def worker(self, federation: Federation) -> PeersWorker:
        return BecomePeers(Value(federation)).build(Workshop(self.scenario, 0.0))

    def dry(
        self, recorder: PeersRecorder, federation: Federation, measure: Callable[[], PeerCost]
    ) -> Iterator[Exchanged]:
        recorder.held(federation.samples)
        return recorder.follow(new_timeline(self.scenario, federation.samples, measure))
