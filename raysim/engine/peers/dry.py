"""The dry run of a scenario without a server: the timeline of its peers alone."""

from __future__ import annotations

from raysim.data import federate
from raysim.engine.peers.family import new_timeline
from raysim.engine.peers.recorder import PeersRecorder
from raysim.scenario import Scenario
from raysim.workers.peers_protocol import MakePeersWorker, WorkPerPeer


def follow_peers(scenario: Scenario, recorder: PeersRecorder) -> None:
    """Who mixes when, and which messages are lost."""
    federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
    recorder.partition(federation.partition_table(), federation.samples)
    for exchanged in new_timeline(scenario, federation.samples, lambda: _measure(scenario)):
        recorder.exchanged(exchanged)


def _measure(scenario: Scenario) -> WorkPerPeer:
    """What training and mixing cost, from a peer whose work is thrown away."""
    worker = MakePeersWorker(scenario, 0.0)()
    worker.load()
    (cost,) = worker.work()
    return cost
