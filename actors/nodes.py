"""Calls that are made on each node of a Ray cluster."""

from collections.abc import Callable
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.process import OnNode

Answer = TypeVar("Answer")


def on_every_node(call: Callable[[], Answer], within_s: float) -> list[OnNode[Answer]]:
    """Calls a function in a process on every node of the cluster to which this process is connected.

    within_s: how long the nodes may take together; one that takes longer has an error instead of an answer.
    """
    here = ray.get_runtime_context().get_node_id()
    asked = [(node, _asked(call, node["NodeID"])) for node in ray.nodes() if node["Alive"]]
    ray.wait([reference for _, reference in asked], num_returns=len(asked), timeout=within_s, fetch_local=False)
    found = []
    for node, reference in asked:
        about = (node["NodeManagerAddress"], node["NodeID"] == here, node["Resources"])
        found.append(OnNode(*about, *_answer(reference, within_s)))
    return found


def _asked(call: Callable[[], Any], node: str) -> Any:
    there = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
    remote: Any = ray.remote  # its types lack this strategy
    return remote(num_cpus=0, max_retries=0, scheduling_strategy=there)(_call).remote(call)


def _call(call: Callable[[], Answer]) -> Answer:
    return call()


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
