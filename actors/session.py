"""Runs an engine in a scheduler actor, on the Ray cluster that is there or on a local one."""

from __future__ import annotations

import math
import os
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import ray
from ray.autoscaler.sdk import request_resources
from ray.exceptions import RayActorError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.cluster import RayPool
from actors.pool import JobFailed, MissingResources

NAMESPACE = "raysim"

Engine = Callable[[Any], Iterator[Any]]  # from a pool to what the caller is to see, as the run goes on


class Demand(NamedTuple):
    """What a run asks of a cluster: so many bundles of CPUs and (fractions of) GPUs, an actor each."""

    bundles: tuple[tuple[float, float], ...]  # (cpus, gpus)
    wait_s: float  # how long an autoscaling cluster may take to bring them

    @property
    def cpus(self) -> float:
        return sum(cpus for cpus, _ in self.bundles)

    @property
    def gpus(self) -> float:
        return sum(gpus for _, gpus in self.bundles)


class Scheduler:
    """The scheduler actor. It is not detached: it and its workers end when the driver does."""

    def __init__(self, run: str) -> None:
        self._pool = RayPool(run)

    def run(self, engine: Engine) -> Iterator[Any]:
        """What the engine yields, then the JobFailed that ended it, if one did: Ray would wrap what is raised."""
        try:
            yield from engine(self._pool)
        except JobFailed as failed:
            yield failed
        except Exception as error:  # of the engine itself
            yield JobFailed("scheduler", f"{type(error).__name__}: {error}", traceback.format_exc())
        finally:
            self._pool.close()


def run_on_ray(engine: Engine, run: str, demand: Demand, address: str | None = None) -> Iterator[Any]:
    """What the engine yields in the run's scheduler actor.

    address: of a cluster; else the environment's RAY_ADDRESS; else a local one is started, which ends with the process.
    Raises MissingResources before any actor is made, JobFailed as the engine does, ConnectionError without a cluster.
    """
    connect(address, demand)
    check(demand)
    here = NodeAffinitySchedulingStrategy(node_id=ray.get_runtime_context().get_node_id(), soft=False)
    scheduler: Any = (
        ray.remote(Scheduler)
        .options(name=f"{run}/scheduler", num_cpus=0, max_restarts=0, scheduling_strategy=here)  # it writes files here
        .remote(run)
    )
    try:
        for reference in scheduler.run.options(num_returns="streaming").remote(engine):
            item = ray.get(reference)
            if isinstance(item, JobFailed):
                raise item
            yield item
    except RayActorError as error:
        raise JobFailed("scheduler", f"the scheduler actor died: {error}", "") from error
    finally:
        ray.kill(scheduler)


def connect(address: str | None, demand: Demand) -> None:
    """Connects this process, once."""
    if ray.is_initialized():
        return
    address = address or os.environ.get("RAY_ADDRESS")
    if address:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False)
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    cpus = max(os.cpu_count() or 1, math.ceil(demand.cpus))  # a laptop may have fewer cores than actors
    ray.init(address="local", namespace=NAMESPACE, num_cpus=cpus, log_to_driver=False)


def check(demand: Demand) -> None:
    """Waits as long as an autoscaling cluster may take, then raises MissingResources. Ray would wait for ever."""
    deadline = time.monotonic() + demand.wait_s
    if demand.wait_s:
        request_resources(bundles=[{"CPU": cpus, "GPU": gpus} for cpus, gpus in demand.bundles])
    while missing := _missing(demand):
        if time.monotonic() >= deadline:
            hint = "" if demand.wait_s else "; a cluster that grows by itself needs resources.wait_s"
            raise MissingResources(f"the cluster must have {missing}; ask for less under resources{hint}")
        time.sleep(1.0)


def _missing(demand: Demand) -> str:
    have = ray.cluster_resources()
    wanted = {"CPU": demand.cpus, "GPU": demand.gpus}
    short = {kind: amount for kind, amount in wanted.items() if amount > have.get(kind, 0)}
    return " and ".join(f"{amount:g} {kind}, got {have.get(kind, 0):g}" for kind, amount in short.items())
