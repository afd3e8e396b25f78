"""The nodes of a Ray cluster: calls that are made on each of them, and how many more actors they have room for."""

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import ray
from ray._private.state import available_resources_per_node
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.placement import resources_of, selector
from actors.pool import Needs
from actors.process import OnNode, has_labels

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


def room(needs: Needs, most: int) -> int:
    """Returns for how many more actors with these needs there is room, as far as Ray knows, at most `most`.

    Each must have all that it needs on one node. GPUs of a node count together, so that an actor may find that no
    single one has its fraction left; it then waits.
    """
    wanted, labels, free = resources_of(needs), selector(needs), available_resources_per_node()
    fitting = [node["NodeID"] for node in ray.nodes() if node["Alive"] and has_labels(labels, node["Labels"])]
    return min(most, sum(_times(wanted, free.get(node, {}), most) for node in fitting))


def _times(wanted: Mapping[str, float], free: Mapping[str, float], most: int) -> int:
    """How many times a node has what is wanted, at most `most`."""
    return min([most, *(math.floor(free.get(kind, 0.0) / amount + 1e-6) for kind, amount in wanted.items())])
