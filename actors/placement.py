"""The resources that a run asks of a Ray cluster, and the placement group that reserves them for it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from actors.pool import MissingResources

GRACE_S = 5.0  # extra time to wait, because resources of a run that has just ended are not free at once


class Demand(NamedTuple):
    """What a run asks of a cluster: CPUs and GPUs (or fractions of one) for each of its actors, by name."""

    actors: dict[str, tuple[float, float]]
    wait_s: float = 0.0  # seconds that an autoscaling cluster may take to provide them
    takes_all: bool = False  # whether further actors join where there is room, so that little is left for other runs

    @property
    def cpus(self) -> float:
        return sum(cpus for cpus, _ in self.actors.values())

    @property
    def gpus(self) -> float:
        return sum(gpus for _, gpus in self.actors.values())


class Placement(NamedTuple):
    """Which actor has which bundle of a placement group. Actors that need neither CPUs nor GPUs have none."""

    group: PlacementGroup | None = None
    names: tuple[str, ...] = ()  # names of the actors, in the order of the group's bundles

    def strategy(self, name: str) -> PlacementGroupSchedulingStrategy | None:
        """Returns Ray's strategy for where to start an actor; None if it may be anywhere."""
        if self.group is None or name not in self.names:
            return None
        return PlacementGroupSchedulingStrategy(self.group, self.names.index(name))


class Budget:
    """Shares the resources of a cluster among runs: a run that asks for more than is left waits. Threads may share it.

    most: how many runs may go on at a time, whatever they ask for; None: as many as fit into the cluster, at least one.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._spent: list[Demand] = []
        self._changed = threading.Condition()

    @contextmanager
    def spent(self, demand: Demand) -> Iterator[None]:
        """Waits until there is room for the demand, then holds it until the block ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_room(demand))
            self._spent.append(demand)
        try:
            yield
        finally:
            with self._changed:
                self._spent.remove(demand)
                self._changed.notify_all()

    def _has_room(self, demand: Demand) -> bool:
        if not self._spent:
            return True
        if self._most is not None:
            return len(self._spent) < self._most
        if demand.takes_all or any(spent.takes_all for spent in self._spent):
            return False
        have = ray.cluster_resources()  # asked anew, because the cluster may have grown
        cpus, gpus = (demand.cpus + sum(d.cpus for d in self._spent), demand.gpus + sum(d.gpus for d in self._spent))
        return bool(cpus <= have.get("CPU", 0) and gpus <= have.get("GPU", 0))


@contextmanager
def reserved(demand: Demand) -> Iterator[Placement]:
    """Reserves resources for every actor until the block ends.

    Without that, an actor that finds no room would wait for ever, and Ray would not say so. Raises MissingResources: at
    once if the cluster is too small and `wait_s` is 0, else after `wait_s` + GRACE_S seconds.
    """
    if not demand.wait_s:
        _refuse_too_small(demand)
    bundles = {name: _resources(*needs) for name, needs in demand.actors.items() if any(needs)}
    if not bundles:
        yield Placement()
        return
    group = placement_group(list(bundles.values()))
    try:
        _wait(group, demand)
        yield Placement(group, tuple(bundles))
    finally:
        within(GRACE_S, lambda: remove_placement_group(group))


def _resources(cpus: float, gpus: float) -> dict[str, float]:
    return {kind: amount for kind, amount in (("CPU", cpus), ("GPU", gpus)) if amount}


def _refuse_too_small(demand: Demand) -> None:
    have = ray.cluster_resources()
    short = {
        kind: amount for kind, amount in _resources(demand.cpus, demand.gpus).items() if amount > have.get(kind, 0)
    }
    if short:
        missing = " and ".join(f"{amount:g} {kind}, got {have.get(kind, 0):g}" for kind, amount in short.items())
        hint = "ask for less under resources; a cluster that grows by itself needs resources.wait_s"
        raise MissingResources(f"the cluster must have {missing}; {hint}")


def _wait(group: PlacementGroup, demand: Demand) -> None:
    deadline = time.monotonic() + demand.wait_s + GRACE_S
    while not group.wait(1):  # Ctrl-C cannot end this call, so it waits a second at a time
        if time.monotonic() >= deadline:
            wanted = Counter(_spell(_resources(*needs)) for needs in demand.actors.values() if any(needs))
            actors = " and ".join(f"{number} x ({needs})" for needs, number in wanted.items())
            total, free = _spell(ray.cluster_resources()), _spell(ray.available_resources())
            raise MissingResources(
                f"the cluster must have room for {actors}, each on one node, got {total} in all, of which {free} "
                f"free, after {demand.wait_s + GRACE_S:g} s; ask for less under resources, or wait longer with "
                "resources.wait_s"
            )


def _spell(resources: dict[str, Any]) -> str:
    return ", ".join(f"{resources[kind]:g} {kind}" for kind in ("CPU", "GPU") if kind in resources) or "nothing"


def within(seconds: float, call: Callable[[], None]) -> None:
    """Calls what tidies up, and waits for it, but no longer than so many seconds.

    Without the GCS, Ray would wait for a minute and then end this process. By then the work is done and written, and
    whatever is left ends with this process or with the cluster.
    """

    def guarded() -> None:
        with suppress(RayError, ValueError, RuntimeError):  # it is gone already, or the connection is
            call()

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(seconds)
