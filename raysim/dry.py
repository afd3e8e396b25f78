"""The dry run: a scenario's timeline alone, in the same tables, with nothing trained."""

from __future__ import annotations

from pathlib import Path

from raysim import rows
from raysim.algorithms import Population
from raysim.data import federate
from raysim.engine import now, run_info
from raysim.protocol import MakeWorker, WorkPerClient
from raysim.scenario import Scenario
from raysim.simulate import new_timeline
from raysim.world.timeline import Closed, Ended, Stepped
from results import Writer, write_json


def dry_run(scenario: Scenario, folder: Path) -> None:
    """Who is picked, arrives, is used, late or lost. Loads the data, for only clients with samples take part."""
    info = run_info(scenario, folder.name, "dry")
    writer = Writer(folder, folder.name)
    try:
        info["totals"] = _follow(scenario, writer)
    except Exception as error:
        info |= {"status": "failed", "error": f"{type(error).__name__}: {error}"}
        raise
    finally:
        writer.close()
        write_json(folder, {**info, "finished_at": now()})


def _follow(scenario: Scenario, writer: Writer) -> dict[str, int]:
    """Writes the tables; gives the totals of run.json."""
    federation = federate(scenario.data, scenario.server_data, scenario.seed)
    for row in rows.partition_rows(federation.partition_table()):
        writer.add("partition", row)
    samples = federation.samples
    population = Population(int((samples > 0).sum()), int(samples.sum()))
    totals = {"dispatched": 0, "used": 0, "discarded": 0, "dropped": 0, "unfinished": 0, "steps": 0, "rounds": 0}
    late = 0
    for happening in new_timeline(scenario, samples, lambda: _measure(scenario)):
        if isinstance(happening, Ended):
            writer.add("updates", rows.ended_row(happening, int(samples[happening.dispatched.client])))
            totals[happening.status] += 1
            late += happening.status == "discarded"
        elif isinstance(happening, Stepped):
            for row in rows.used_rows(happening, scenario.algorithm.weigh(happening.arrivals, population)):
                writer.add("updates", row)
            writer.add("steps", rows.step_row(happening, late))
            totals["used"] += len(happening.members)
            totals["steps"] += 1
            late = 0
        elif isinstance(happening, Closed):
            totals["rounds"] = happening.round + 1
    totals["dispatched"] = sum(totals[key] for key in ("used", "discarded", "dropped", "unfinished"))
    return totals


def _measure(scenario: Scenario) -> WorkPerClient:
    """What an update costs, from one that is thrown away."""
    worker = MakeWorker(scenario, 0.0)()
    worker.load()
    (cost,) = worker.work()
    return cost
