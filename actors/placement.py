"""The nodes of a Ray cluster: what a run asks of them, the placement group that reserves it, and calls on each."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.placement_group import (
    PlacementGroup,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.pool import MissingResources, Needs
from actors.process import OnNode

Answer = TypeVar("Answer")

NODE_ID = "ray.io/node-id"  # a label that Ray gives each node
GRACE_S = 5.0  # extra seconds to wait, because the resources of a run that has ended are not free at once


class Demand(NamedTuple):
    """What a run asks of a cluster, for each of its actors, by name."""

    actors: Mapping[str, Needs]
    wait_s: float = 0.0  # seconds that an autoscaling cluster may take to provide them

    @property
    def total(self) -> dict[str, float]:
        """What the actors need together, by kind of resource: CPU and GPU."""
        return together(resources_of(needs) for needs in self.actors.values())

    def fits(self, free: Mapping[str, float]) -> bool:
        """Whether there is enough for it at once, on whichever nodes. free: by kind of resource."""
        return all(amount <= free.get(kind, 0.0) for kind, amount in self.total.items())


class Placement(NamedTuple):
    """On which node there is room for which actor, and the placement group that holds the room until actors take it.

    Actors that need nothing of their node may be anywhere.
    """

    group: PlacementGroup | None = None
    nodes: Mapping[str, str] = {}  # by the actor's name: Ray's id of the node

    def options(self, name: str, needs: Needs) -> dict[str, Any]:
        """Returns Ray's options for an actor: what it needs, and where to start it.

        An actor whose node is gone, or that has none, goes wherever there is room on a node of the kind that it needs.
        """
        asked = {"num_cpus": needs.cpus, "num_gpus": needs.gpus}
        node = self.nodes.get(name)
        if node and is_alive(node):
            return {**asked, "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False)}
        return {**asked, "label_selector": selector(needs)}

    def is_lost(self, name: str) -> bool:
        """Whether the node that had room for an actor is gone."""
        return name in self.nodes and not is_alive(self.nodes[name])

    def release(self) -> None:
        """Gives the room to whoever asks for it now.

        Actors are not started in the group itself: if it lost a node and no other had room, Ray would look for room
        without a pause, and slow down all that the run does.
        """
        if self.group is not None:
            remove_placement_group(self.group)


def left(beside: Iterable[Demand] = ()) -> dict[str, float]:
    """Returns what is free in the cluster, by kind. beside: what is not, though Ray may not have noticed yet."""
    free, have, given = ray.available_resources(), ray.cluster_resources(), together(other.total for other in beside)
    return {kind: min(free.get(kind, 0.0), amount - given.get(kind, 0.0)) for kind, amount in have.items()}


@contextmanager
def reserved(demand: Demand) -> Iterator[Placement]:
    """Finds room for every actor, and holds it until the actors take it, or until the block ends.

    Without that, an actor that finds no room would wait for ever, and Ray would not say so. Raises MissingResources: at
    once if the cluster is too small and `wait_s` is 0, else after `wait_s` + GRACE_S seconds.
    """
    refuse_too_small(demand)
    placed = {name: needs for name, needs in demand.actors.items() if needs != Needs()}
    if not placed:
        yield Placement()
        return
    group = placement_group(
        [resources_of(needs) or {"memory": 1} for needs in placed.values()],  # bundles must not be empty
        bundle_label_selector=[selector(needs) for needs in placed.values()],
    )
    try:
        _wait(group, demand)
        where = placement_group_table(group)["bundles_to_node_id"]
        yield Placement(group, {name: where[place] for place, name in enumerate(placed)})
    finally:
        within(GRACE_S, lambda: remove_placement_group(group))


def together(amounts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Returns the sums of amounts, by kind."""
    total: dict[str, float] = {}
    for amount in amounts:
        for kind, number in amount.items():
            total[kind] = total.get(kind, 0.0) + number
    return total


def resources_of(needs: Needs) -> dict[str, float]:
    asked = {"CPU": needs.cpus, "GPU": needs.gpus}
    return {kind: amount for kind, amount in asked.items() if amount}


def selector(needs: Needs) -> dict[str, str]:
    """Returns Ray's selectors for the labels of the actor's node."""
    here = {NODE_ID: ray.get_runtime_context().get_node_id()} if needs.with_driver else {}
    return {**needs.labels, **here}


def refuse_too_small(demand: Demand) -> None:
    """Raises MissingResources if the cluster never has what is asked of it. A growing cluster is recognised by
    `wait_s`."""
    if demand.wait_s:
        return
    have = ray.cluster_resources()
    short = {kind: amount for kind, amount in demand.total.items() if amount > have.get(kind, 0)}
    if short:
        missing = " and ".join(f"{amount:g} {kind}, got {have.get(kind, 0):g}" for kind, amount in short.items())
        hint = "ask for less under resources"
        if not started_here():
            hint += "; a cluster that grows by itself needs resources.wait_s"
        elif "CPU" in short:  # a run that starts a local Ray gives it as many as the run asks for
            hint += ", or call ray.shutdown() first: this process started its Ray before it knew of this run"
        raise MissingResources(f"the cluster must have {missing}; {hint}")


def _wait(group: PlacementGroup, demand: Demand) -> None:
    deadline = time.monotonic() + demand.wait_s + GRACE_S
    while not group.wait(1):  # Ctrl-C cannot end this call, so it waits a second at a time
        if time.monotonic() >= deadline:
            wanted = Counter(_wanted(needs) for needs in demand.actors.values() if needs != Needs())
            actors = " and ".join(f"{number} x ({needs})" for needs, number in wanted.items())
            total, free = ray.cluster_resources(), ray.available_resources()
            raise MissingResources(
                f"the cluster must have room for {actors}, each on one node, got {_spell(total)} in all, of "
                f"which {_spell(free)} free, after {demand.wait_s + GRACE_S:g} s; ask for "
                "less under resources, or wait longer with resources.wait_s"
            )


def _wanted(needs: Needs) -> str:
    """Returns what an actor needs, for a message."""
    labels = [f"label {label} {value}" for label, value in needs.labels.items()]
    here = ["on the node of the driver"] if needs.with_driver else []
    return ", ".join([*(f"{amount:g} {kind}" for kind, amount in resources_of(needs).items()), *labels, *here])


def _spell(resources: Mapping[str, float]) -> str:
    """Returns what a cluster has of CPUs and GPUs, for a message."""
    return ", ".join(f"{resources[kind]:g} {kind}" for kind in ("CPU", "GPU") if kind in resources) or "nothing"


def is_alive(node: str) -> bool:
    """Whether a node is up, as far as the cluster's head knows. node: Ray's id of it."""
    return any(entry["Alive"] for entry in ray.nodes() if entry["NodeID"] == node)


def started_here() -> bool:
    """Whether this process started the Ray that it is connected to."""
    node = ray._private.worker._global_node
    return node is not None and node.is_head()


def within(seconds: float, call: Callable[[], None]) -> bool:
    """Calls a function that tidies up, and waits for it for at most so many seconds. Returns whether that was enough.

    If the cluster's head is gone, Ray would wait for a minute and then end this process, although the work is done and
    written. What is not tidied up ends with this process or with the cluster.
    """

    def guarded() -> None:
        with suppress(RayError, ValueError, RuntimeError):  # it is gone already, or the connection is
            call()

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


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
