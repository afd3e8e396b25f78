"""What to change in a scenario whose run ran out of memory."""

from __future__ import annotations

from actors import JobFailed
from raysim.scenario import Scenario


def with_cure(failed: JobFailed, scenario: Scenario) -> JobFailed:
    """Returns the failure of a job. If memory ran out, it says which keys of the scenario to change."""
    if failed.memory is None:
        return failed
    cure = _of_gpu(scenario) if failed.memory == "gpu" else _of_node(scenario)
    return JobFailed(failed.label, f"{failed.cause}; {cure}", failed.traceback)


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
