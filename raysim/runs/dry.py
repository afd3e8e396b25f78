"""The dry run: it writes a scenario's timeline into the tables of a run, and trains nothing."""

import gc
import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from actors.fault import describe
from raysim.data import federate
from raysim.engine.families import family_of
from raysim.engine.recorder import Recorder
from raysim.parts.errors import Problem, ScenarioError
from raysim.runs.folder import now, run_info
from raysim.runs.origin import Origin, record_origin
from raysim.scenario import Scenario
from results import Writer, write_json


def dry_run(scenario: Scenario, folder: Path) -> None:
    """Writes the timeline into the folder: who is picked when, and whether each update is used, too late or lost."""
    info = run_info(scenario, folder.name, "dry") | {"dry": True} | record_origin(Origin.known_for(scenario), folder)
    info["notes"] = [*info["notes"], *dry_notes(scenario)]
    writer = Writer(folder, folder.name)
    family = family_of(scenario)
    recorder: Recorder = family.recorder(writer)
    try:
        with _rare_collections():
            federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
            recorder.partition(federation.partition_table())
            deque(family.dry(recorder, federation, lambda: family.worker(federation).cost()), maxlen=0)
    except (Exception, SystemExit) as error:
        info |= {"status": "failed", "error": describe(error)}
        raise
    except BaseException:  # such as Ctrl-C
        info["status"] = "interrupted"
        raise
    finally:
        writer.close()
        info |= {"finished_at": now(), **recorder.outcome()}
        write_json(folder, info)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Within the block, Python looks for cyclic garbage rarely, and never among the objects that were there before.

    A timeline leaves no such garbage, and looking for it would take a sixth of a long one's time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def dry_notes(scenario: Scenario) -> list[str]:
    """Returns a note if the run might end before its timeline does, which a dry run cannot know."""
    if scenario.run.until is None or not (trained := scenario.run.until.trained):
        return []
    return [f"run.until: an end by {trained} is known only once clients train; this timeline goes on without it"]


def require_plan(scenario: Scenario) -> None:
    """Raises ScenarioError if the timeline, or its end, is known only once clients have trained."""
    if problems := [*_unknown(scenario)]:
        raise ScenarioError(scenario.name, problems)


def _unknown(scenario: Scenario) -> Iterator[Problem]:
    """Yields what a dry run cannot know."""
    dry = "in a dry run, which trains nobody, got"
    if math.isinf(min(scenario.run.horizon[:3])):
        got = f"one by {scenario.run.until.trained}" if scenario.run.until else "none"
        cure = "add virtual_time or updates, or run.rounds, or leave out --dry"
        yield Problem("run.until", f"must have an end that is known {dry} {got}; {cure}")
    if scenario.needs_losses:
        policy = scenario.world.dispatch.policy.name
        text = f"must not need losses {dry} {policy}; take another policy, or run it without --dry"
        yield Problem("world.dispatch.policy", text)
    if scenario.delays_follow_training:
        got = f"compute with {scenario.algorithm.name}, whose clients may stop early"
        text = (
            f"must not depend on how long clients really train {dry} {got}; take other delays, or run it without --dry"
        )
        yield Problem("world.delay", f"{text}; take other delays, or run it without --dry")
