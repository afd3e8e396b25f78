"""Runs without a server: peers train, and mix their models with those of their neighbours."""

from __future__ import annotations

from dataclasses import dataclass

from actors import Group, Pool, Value
from raysim.data import federate
from raysim.engine import groups
from raysim.engine.checkpoint import Checkpoint
from raysim.engine.peers.jobs import PeersJobs
from raysim.engine.peers.recorder import PeersRecorder
from raysim.engine.peers.simulation import PeersSimulation
from raysim.engine.peers.timeline import new_timeline
from raysim.scenario import Scenario
from raysim.workers.replies import PeerCost
from raysim.workers.workshop import BecomePeers, Workshop
from results import Writer


@dataclass(frozen=True)
class PeersFamily:
    """How algorithms without a server are run."""

    scenario: Scenario

    @property
    def groups(self) -> list[Group]:
        return [groups.loader(self.scenario), groups.clients(self.scenario)]

    def recorder(self, writer: Writer) -> PeersRecorder:
        return PeersRecorder(writer, synchronous=self.scenario.world.synchronous)

    def start(self, pool: Pool, recorder: PeersRecorder, checkpoint: Checkpoint | None) -> PeersSimulation:
        """Starts a run. Raises JobFailed if that fails, and ValueError if a peer has no samples to train on."""
        for group in self.groups:
            pool.start(group)
        return PeersSimulation(self.scenario, PeersJobs(self.scenario, pool), recorder, checkpoint)

    def dry(self, recorder: PeersRecorder) -> None:
        """Writes who mixes when and which messages are lost, and trains nothing."""
        scenario = self.scenario
        federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
        recorder.held(federation.samples)
        recorder.partition(federation.partition_table())

        def cost() -> PeerCost:
            return BecomePeers(Value(federation)).build(Workshop(scenario, 0.0)).cost()

        for exchanged in new_timeline(scenario, federation.samples, cost):
            recorder.exchanged(exchanged)
