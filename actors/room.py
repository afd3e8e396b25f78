"""How many more actors a Ray cluster has room for."""

import math
from collections.abc import Mapping

import ray
from ray._private.state import available_resources_per_node

from actors.labels import match
from actors.placement import resources_of, selector
from actors.pool import Needs


def room(needs: Needs, most: int) -> int:
    """Returns for how many more actors with these needs there is room, as far as Ray knows, at most `most`.

    Each must have all that it needs on one node. GPUs of a node count together, so that an actor may find that no
    single one has its fraction left; it then waits.
    """
    wanted, labels, free = resources_of(needs), selector(needs), available_resources_per_node()
    fitting = [node["NodeID"] for node in ray.nodes() if node["Alive"] and match(labels, node["Labels"])]
    return min(most, sum(_times(wanted, free.get(node, {}), most) for node in fitting))


def _times(wanted: Mapping[str, float], free: Mapping[str, float], most: int) -> int:
    """How many times a node has what is wanted, at most `most`."""
    return min([most, *(math.floor(free.get(kind, 0.0) / amount + 1e-6) for kind, amount in wanted.items())])
