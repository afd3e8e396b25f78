"""The dry run: it writes a scenario's timeline into the tables of a run, and trains nothing."""

import logging
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from actors import JobFailed
from actors.fault import describe
from raysim.data import federate
from raysim.engine.families import family_of
from raysim.engine.recorder import Recorder
from raysim.parts.errors import Problem, RunFailed, ScenarioError
from raysim.parts.process import isolated
from raysim.runs.explained import explained
from raysim.runs.origin import Origin, record_origin
from raysim.runs.record import RunRecord, now
from raysim.runs.result import Result
from raysim.scenario import Scenario
from results import Writer
from results.ending import Status

_log = logging.getLogger("raysim")


def dry_run(scenario: Scenario, make_folder: Callable[[], Path]) -> Result:
    """Writes the timeline into a folder: who is picked when, and whether each update is used, too late or lost.

    make_folder: makes that folder, once it is clear that the timeline can be known. Raises ScenarioError if it cannot,
    and RunFailed if it turns out to be impossible.
    """
    if problems := [*_unknown(scenario)]:
        raise ScenarioError(scenario.name, problems)
    folder = make_folder()
    try:
        with isolated():
            _write(scenario, folder)
    except (Exception, SystemExit) as error:  # missing data, scripted picks that cannot be followed, a user's class
        failed = explained(JobFailed.by(error, "the timeline"), scenario)
        raise RunFailed(failed.label, failed.cause, failed.traceback, folder) from error
    return Result(folder)


def _write(scenario: Scenario, folder: Path) -> None:
    """Writes tables and run.json."""
    record = RunRecord.begun(
        scenario, folder.name, Status.DRY, dry=True, **record_origin(Origin.known_for(scenario), folder)
    )
    if scenario.run.until is not None and (trained := scenario.run.until.trained):
        text = f"run.until: an end by {trained} is known only once clients train; this timeline goes on without it"
        record = record.noting(text)
        _log.warning(f"{scenario.name}: {text}")
    writer = Writer(folder, folder.name)
    family = family_of(scenario)
    recorder: Recorder = family.recorder(writer)
    outcome: dict[str, Any] = {}
    try:
        federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
        recorder.partition(federation.partition_table())
        deque(family.dry(recorder, federation, lambda: family.worker(federation).cost()), maxlen=0)
    except (Exception, SystemExit) as error:
        outcome = {"status": Status.FAILED, "error": describe(error)}
        raise
    except BaseException:  # such as Ctrl-C
        outcome = {"status": Status.INTERRUPTED}
        raise
    finally:
        writer.close()
        replace(record, finished_at=now(), **recorder.outcome(), **outcome).write(folder)


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
        text = f"must not depend on how long clients really train {dry} {got}"
        yield Problem("world.delay", f"{text}; take other delays, or run it without --dry")
