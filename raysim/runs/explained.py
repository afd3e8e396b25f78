"""Adds advice to the failure of a job: the key of the scenario whose code failed, or the keys that save memory."""

from __future__ import annotations

from actors import JobFailed
from raysim.scenario import Scenario
from raysim.scenario.culprit import culprit_of


def explained(failed: JobFailed, scenario: Scenario) -> JobFailed:
    """Returns the failure of a job, with advice in terms of the scenario.

    If memory ran out, it says which keys to change. If it was raised in code of the user's own, it says where.
    """
    cause = failed.cause
    if failed.memory is not None:
        cause += f"; {_of_gpu(scenario) if failed.memory == 'gpu' else _of_node(scenario)}"
    if culprit := culprit_of(failed.frames, scenario):
        cause += f" - raised in {culprit}"
    return failed if cause == failed.cause else JobFailed(failed.label, cause, failed.traceback)


def _of_gpu(scenario: Scenario) -> str:
    asked = scenario.resources
    of_server = f", or of resources.gpus_per_aggregator ({asked.gpus_per_aggregator:g})" if scenario.has_server else ""
    return (
        f"each actor is held to its share of a GPU's memory: raise that of resources.gpus_per_client "
        f"({asked.gpus_per_client:g}){of_server}, with fewer resources.client_actors ({asked.client_actors}), or lower "
        f"{_of_training(scenario)}; raysim doctor measures what a client needs"
    )


def _of_node(scenario: Scenario) -> str:
    asked = scenario.resources
    return (
        f"lower resources.client_actors ({asked.client_actors}), raise resources.cpus_per_client "
        f"({asked.cpus_per_client:g}) so that fewer share a node, or lower {_of_training(scenario)}; raysim doctor "
        "measures what a client needs"
    )


def _of_training(scenario: Scenario) -> str:
    return f"local.batch_size ({scenario.local.batch_size}) or resources.chunk ({scenario.resources.chunk})"
