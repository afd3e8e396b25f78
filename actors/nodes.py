"""Calls that are made on every node of a Ray cluster."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.on_node import OnNode

Answer = TypeVar("Answer")


def on_every_node(
    call: Callable[[Mapping[str, float]], Answer], environment: Mapping[str, str], within_s: float
) -> list[OnNode[Answer]]:
    """Calls a function in a process on every node of the cluster to which this process is connected.

    call: gets the resources of its node. environment: variables of the processes. within_s: how long the nodes may
    take together; one that takes longer has an error instead of an answer.
    """
    here = ray.get_runtime_context().get_node_id()
    asked = [(node, _asked(call, node, environment)) for node in ray.nodes() if node["Alive"]]
    ray.wait([reference for _, reference in asked], num_returns=len(asked), timeout=within_s, fetch_local=False)
    found = []
    for node, reference in asked:
        about = (node["NodeManagerAddress"], node["NodeID"] == here, node["Resources"], node["Labels"])
        found.append(OnNode(*about, *_answer(reference, within_s)))
    return found


def _asked(call: Callable[[Mapping[str, float]], Any], node: dict[str, Any], environment: Mapping[str, str]) -> Any:
    there = NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
    variables = {"runtime_env": {"env_vars": dict(environment)}} if environment else {}
    remote: Any = ray.remote  # its types lack this strategy
    return remote(num_cpus=0, max_retries=0, scheduling_strategy=there, **variables)(_call).remote(
        call, node["Resources"]
    )


def _call(call: Callable[[Mapping[str, float]], Answer], resources: Mapping[str, float]) -> Answer:
    return call(resources)


def _answer(reference: Any, within_s: float) -> tuple[Any, str]:
    if not ray.wait([reference], timeout=0)[0]:
        ray.cancel(reference, force=True)
        return None, f"it did not answer within {within_s:g} s"
    try:
        return ray.get(reference), ""
    except RayTaskError as error:
        return None, f"{type(error.cause).__name__}: {error.cause}"
    except RayError as error:
        return None, f"{type(error).__name__}: {error}"
