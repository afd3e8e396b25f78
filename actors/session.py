"""Connects to Ray, and runs a program in a scheduler actor."""

from __future__ import annotations

import math
import os
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.cluster import RayPool
from actors.host import describe, trace
from actors.placement import Demand, Placement
from actors.pool import JobFailed, MissingResources

NAMESPACE = "raysim"
PROBE_S = 5.0  # how long a cluster may take to answer at its address
STOP_S = 10.0  # how long the scheduler may take to end an interrupted run

Program = Callable[[Any], Iterator[Any]]  # takes a pool, and yields what the caller sees as the run goes on


class Scheduler:
    """The scheduler actor. It is not detached: it and its workers end when the process that started them does."""

    def __init__(self, run: str, placement: Placement) -> None:
        self._pool = RayPool(run, placement)
        self._ended = threading.Event()

    def run(self, program: Program) -> Iterator[Any]:
        """Runs a program and yields what it yields. A JobFailed is yielded, not raised, because Ray would wrap it."""
        try:
            yield from program(self._pool)
        except JobFailed as failed:
            yield failed
        except KeyboardInterrupt:  # raised by the pool after `stop`
            pass
        except Exception as error:  # raised by the program itself
            yield JobFailed("scheduler", describe(error), trace(error))
        finally:
            self._pool.close()
            self._ended.set()

    def stop(self) -> None:
        """Interrupts the run and waits until it has ended. It runs in a thread of its own, beside `run`."""
        self._pool.interrupt()
        self._ended.wait()


def run_on_ray(program: Program, run: str, placement: Placement) -> Generator[Any, None, None]:
    """Runs a program in a scheduler actor, and yields what it yields. Closing the generator interrupts the run.

    Raises JobFailed if the program does, or if the scheduler dies.
    """
    here = NodeAffinitySchedulingStrategy(node_id=ray.get_runtime_context().get_node_id(), soft=False)
    scheduler: Any = (
        ray.remote(Scheduler)
        # It is on this node, where it writes files. One of its threads is for `run`, the other for `stop`.
        .options(name=f"{run}/scheduler", num_cpus=0, max_restarts=0, max_concurrency=2, scheduling_strategy=here)
        .remote(run, placement)
    )
    try:
        for reference in scheduler.run.options(num_returns="streaming").remote(program):
            item = ray.get(reference)
            if isinstance(item, JobFailed):
                raise item
            yield item
    except RayActorError as error:
        raise JobFailed("scheduler", f"the scheduler actor died: {error}", "") from error
    finally:
        _end(scheduler)


def _end(scheduler: Any) -> None:
    """Stops the scheduler, after it has written its files, unless that takes too long."""
    try:
        ray.get(scheduler.stop.remote(), timeout=STOP_S)
    except (RayActorError, GetTimeoutError):
        pass
    finally:
        ray.kill(scheduler)


def connect(demands: Sequence[Demand], address: str | None = None) -> None:
    """Connects this process to Ray, unless it is connected already.

    address: the address of a cluster; by default that in RAY_ADDRESS, or else a new local Ray. demands: what the coming
    runs ask for; a local Ray gets enough CPUs for each of them. Raises MissingResources if no cluster answers.
    """
    if ray.is_initialized():
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # A laptop may have fewer cores than actors.
        cpus = max(os.cpu_count() or 1, *(math.ceil(demand.cpus) for demand in demands))
        ray.init(address="local", namespace=NAMESPACE, num_cpus=cpus, log_to_driver=False)
        return
    _probe(address)
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError, RayError) as error:  # no cluster, other versions, no token
        hint = "; a cluster that wants a token is reached with RAY_AUTH_MODE=token"
        raise MissingResources(f"address: must be that of a Ray cluster, got {address!r}: {error}{hint}") from error


def _probe(address: str) -> None:
    """Raises MissingResources if nothing answers. Ray would try for more than a minute, then end the process."""
    if "://" in address:
        raise MissingResources(
            f"address: must be auto or host:port, got {address!r}, which is for Ray Client, which raysim does not use; "
            "submit the run as a job to the cluster instead: ray job submit -- raysim run ..."
        )
    host, colon, port = address.rpartition(":")
    if not colon:  # such as auto
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PROBE_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise MissingResources(
            f"address: a Ray cluster must answer there, got {address!r}: {error}; `ray status` on the cluster's head "
            "says whether it is up, and its port is 6379 if none was chosen"
        ) from error
