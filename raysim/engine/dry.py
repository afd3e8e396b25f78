"""The dry run: a scenario's timeline alone, in the same tables, with nothing trained."""

from __future__ import annotations

from pathlib import Path

from actors.host import describe
from raysim.algorithms import Peer
from raysim.data import federate
from raysim.engine.execution import now, run_info
from raysim.engine.peers.dry import follow_peers
from raysim.engine.peers.recorder import PeersRecorder
from raysim.engine.server.family import new_timeline
from raysim.engine.server.recorder import Recorder
from raysim.errors import Problem, ScenarioError
from raysim.scenario import Scenario
from raysim.workers.protocol import WorkPerClient
from raysim.world.server_timeline import Closed, Ended, Stepped
from results import Writer, write_json


def dry_run(scenario: Scenario, folder: Path) -> None:
    """Who is picked, arrives, is used, late or lost. Loads the data, for only clients with samples take part."""
    info = run_info(scenario, folder.name, "dry")
    writer = Writer(folder, folder.name)
    recorder: Recorder | PeersRecorder
    try:
        if isinstance(scenario.algorithm, Peer):
            recorder = PeersRecorder(writer, scenario.world.synchronous)
            follow_peers(scenario, recorder)
        else:
            recorder = Recorder(writer)
            _follow(scenario, recorder)
    except Exception as error:
        info |= {"status": "failed", "error": describe(error)}
        raise
    finally:
        writer.close()
        info |= {"finished_at": now(), "totals": dict(recorder.totals), "ended_early": recorder.early}
        write_json(folder, info)


def require_plan(scenario: Scenario) -> None:
    """ScenarioError where the timeline is not known before clients have trained."""
    if scenario.follows_work:
        text = (
            "must not follow the work that clients do in a dry run, which trains nobody, got compute with "
            f"{scenario.algorithm.name}, whose clients stop early; take other delays, or run it"
        )
        raise ScenarioError(scenario.name, [Problem("world.delay", text)])


def _follow(scenario: Scenario, recorder: Recorder) -> None:
    federation = federate(scenario.data, scenario.server_data, scenario.seed)
    samples = federation.samples
    recorder.partition(federation.partition_table())
    population = scenario.population(samples)
    for happening in new_timeline(scenario, samples, lambda: _measure(scenario)):
        if isinstance(happening, Ended):
            recorder.ended(happening, int(samples[happening.dispatched.client]))
        elif isinstance(happening, Stepped):
            recorder.stepped(happening, scenario.central.weigh(happening.arrivals, population))
        elif isinstance(happening, Closed):
            recorder.closed(happening)


def _measure(scenario: Scenario) -> WorkPerClient:
    """What an update costs, from one that is thrown away."""
    from raysim.workers.server import ServerWorker  # with torch, which most dry runs do without

    worker = ServerWorker(scenario, 0.0)
    worker.load()
    (cost,) = worker.work()
    return cost
