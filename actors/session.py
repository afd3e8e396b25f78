"""Connects to Ray, and runs a program in a scheduler actor."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import ray
from ray._private.services import get_ray_address_from_environment
from ray.exceptions import GetTimeoutError, OutOfMemoryError, RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.cluster import PATIENCE_S, POLL_S, RayPool
from actors.crew import is_there
from actors.memory import brief
from actors.placement import Demand, Placement, started_here, within
from actors.pool import JobFailed, MissingResources, SchedulerDied
from actors.pulse import Pulse, interval

NAMESPACE = "raysim"
PROBE_S = 5.0  # how long a cluster may take to answer at its address
STOP_S = 10.0  # how long the scheduler may take to end an interrupted run

_log = logging.getLogger("raysim")

Program = Callable[[Any], Iterator[Any]]  # takes a pool, and yields what the caller sees as the run goes on


class Scheduler:
    """The scheduler actor. It is not detached: it and its workers end when the process that started them does."""

    def __init__(
        self,
        run: str,
        placement: Placement,
        patience_s: float | None,
        environment: Mapping[str, str],
        wait_s: float,
    ) -> None:
        self._pool = RayPool(run, placement, patience_s, environment, wait_s)
        self._ended = threading.Event()

    def run(self, program: Program) -> Iterator[Any]:
        """Runs a program and yields what it yields. A JobFailed is yielded, not raised, because Ray would wrap it."""
        try:
            yield from program(self._pool)
        except JobFailed as failed:
            yield failed
        except KeyboardInterrupt:  # raised by the pool after `stop`
            pass
        except (Exception, SystemExit) as error:  # raised by the program itself
            yield JobFailed.by(error, "scheduler")
        finally:
            self._ended.set()
            within(STOP_S, self._pool.close)

    def answer(self) -> list[str]:
        """Answers a ping, with all warnings of the pool so far. It runs in a thread of its own, as `stop`."""
        return self._pool.warnings.copy()

    def stop(self) -> list[str]:
        """Interrupts the run and waits until it has ended. Returns what `answer` does."""
        self._pool.interrupt()
        self._ended.wait()
        return self.answer()


class _Warnings:
    """Logs each warning of a pool once."""

    def __init__(self) -> None:
        self._told = 0

    def log(self, warnings: Sequence[str]) -> None:
        """Logs those that are new. warnings: all so far."""
        for warning in warnings[self._told :]:
            _log.warning(warning)
        self._told = max(self._told, len(warnings))

    def came(self, reference: Any) -> bool:
        """Whether a ping of the scheduler is answered. Logs the warnings that came with the answer."""
        if not is_there(reference):
            return False
        with suppress(RayError):  # it has died, and the stream tells that
            self.log(ray.get(reference))
        return True


def run_on_ray(
    program: Program,
    run: str,
    placement: Placement,
    patience_s: float | None = PATIENCE_S,
    environment: Mapping[str, str] | None = None,
    wait_s: float = 0.0,
) -> Generator[Any, None, None]:
    """Runs a program in a scheduler actor, and yields what it yields. Closing the generator interrupts the run.

    patience_s: how long an actor may not answer before it is given up; None: for ever. environment: variables of the
    actors' processes. wait_s: how long the run waits for a node while nothing else can go on, if over two minutes.
    Raises JobFailed if the program does, and SchedulerDied if the scheduler dies or is given up.
    """
    here = NodeAffinitySchedulingStrategy(node_id=ray.get_runtime_context().get_node_id(), soft=False)
    environment = dict(environment or {})
    scheduler: Any = (
        ray.remote(Scheduler)
        # It is on this node, where it writes files. One of its threads is for `run`, the others answer meanwhile.
        .options(
            name=f"{run}/scheduler",
            num_cpus=0,
            max_restarts=0,
            max_concurrency=3,
            scheduling_strategy=here,
            **({"runtime_env": {"env_vars": environment}} if environment else {}),
        )
        .remote(run, placement, patience_s, environment, wait_s)
    )
    stream = scheduler.run.options(num_returns="streaming").remote(program)
    warnings = _Warnings()
    try:
        for reference in _waiting(stream, scheduler, patience_s, warnings):
            item = ray.get(reference)
            if isinstance(item, JobFailed):
                raise item
            yield item
    except RayActorError as error:
        raise SchedulerDied("scheduler", f"the scheduler actor died: {_why(error)}", "") from error
    except OutOfMemoryError as error:
        raise SchedulerDied("scheduler", f"the scheduler actor died: {brief(error)}", "", "node") from error
    finally:
        _end(scheduler, warnings)


def _waiting(stream: Any, scheduler: Any, patience_s: float | None, warnings: _Warnings) -> Iterator[Any]:
    """Yields the references of a stream, and logs the pool's warnings.

    Raises SchedulerDied if the scheduler does not answer.
    """
    pulse = Pulse("scheduler", scheduler.answer.remote, warnings.came)
    patience = math.inf if patience_s is None else patience_s
    listened = time.monotonic()
    while True:
        ready = ray.wait([stream], num_returns=1, timeout=POLL_S, fetch_local=False)[0]
        now = time.monotonic()
        if now - listened >= interval(patience):
            if warning := pulse.beat(now - listened, patience):
                _log.warning(warning)
            listened = now
        if pulse.silent_s >= patience:
            raise SchedulerDied("scheduler", f"it has not answered for {pulse.silent_s:.0f} s", "")
        if ready:
            try:
                yield next(stream)
            except StopIteration:
                return


def _why(error: RayActorError) -> str:
    """Returns why an actor died: of what Ray says the last line, without its advice."""
    return str(error).rstrip().rpartition("\n")[2].partition(" If the process was killed")[0].rstrip(".")


def _end(scheduler: Any, warnings: _Warnings) -> None:
    """Stops the scheduler, after it has written its files, unless that takes too long."""
    try:
        warnings.log(ray.get(scheduler.stop.remote(), timeout=STOP_S))
    except (RayActorError, OutOfMemoryError, GetTimeoutError):
        pass
    finally:
        within(STOP_S, lambda: ray.kill(scheduler))


def connect(demands: Sequence[Demand], address: str | None = None) -> None:
    """Connects this process to Ray, unless it is connected already.

    address: the address of a cluster; by default that in RAY_ADDRESS, or else a new local Ray. demands: what the coming
    runs ask for; a local Ray gets enough CPUs for each of them. Raises MissingResources if no cluster answers, if a
    local Ray does not start, or if this process is connected to another cluster.
    """
    if ray.is_initialized():
        if address is not None:
            _require_connected_to(address)
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # A laptop may have fewer cores than actors.
        cpus = max(os.cpu_count() or 1, *(math.ceil(demand.total.get("CPU", 0)) for demand in demands))
        try:
            with _own_signals():
                ray.init(address="local", namespace=NAMESPACE, num_cpus=cpus, log_to_driver=False)
        except Exception as error:  # what Ray raises if its processes do not come up in time has no class of its own
            raise MissingResources(f"Ray did not start on this machine: {error}") from error
        return
    address = _found() if address == "auto" else address
    _probe(address)
    try:
        with _own_signals():
            ray.init(address=address, namespace=NAMESPACE, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError, RayError) as error:  # no cluster, other versions, no token
        hint = "; a cluster that wants a token is reached with RAY_AUTH_MODE=token"
        raise MissingResources(f"address: must be that of a Ray cluster, got {address!r}: {error}{hint}") from error


def _found() -> str:
    """Returns the address that Ray takes for `auto`, which may be that of a cluster that is gone.

    Raises MissingResources if Ray knows of none.
    """
    try:
        return str(get_ray_address_from_environment("auto", None))
    except ConnectionError as error:
        raise MissingResources(
            "address: a Ray must be up on this machine for 'auto', and none was found; `ray start --head` starts one, "
            "and 'local' stands for one of the command's own"
        ) from error


def _require_connected_to(address: str) -> None:
    """Raises MissingResources if this process is connected to another cluster than that of an address."""
    connected = ray.get_runtime_context().gcs_address
    if address == "auto" or (started_here() if address == "local" else _endpoints(address) & _endpoints(connected)):
        return
    raise MissingResources(
        f"address: must be that of the Ray to which this process is connected, {connected!r}, got {address!r}; leave "
        "it out to run there, or call ray.shutdown() first"
    )


def _endpoints(address: str) -> set[tuple[str, str]]:
    """Returns the IP addresses of host:port, each with the port; none if there is no such host."""
    host, _, port = address.rpartition(":")
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host.strip("[]"), None)}
    except (OSError, UnicodeError):
        return set()
    return {(ray.util.get_node_ip_address() if ip in ("127.0.0.1", "::1") else ip, port) for ip in found}


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keeps a handler of SIGTERM that the caller has set, which Ray would replace; it also gets what comes meanwhile.

    Processes that Ray starts within the block ignore SIGHUP: a lost terminal sends it to all of them, and the scheduler
    could no longer write how the run ended. They end when this process does.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    terminate, hang_up = signal.getsignal(signal.SIGTERM), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        try:
            yield
        finally:
            signal.signal(signal.SIGHUP, hang_up)
            if callable(terminate):
                signal.signal(signal.SIGTERM, terminate)
    except SystemExit:  # raised by handlers of SIGTERM that Ray had put in place by then
        if callable(terminate):
            terminate(signal.SIGTERM, None)
        raise


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
            "says whether it is up, its port is 6379 if none was chosen, and `ray start --head` starts one"
        ) from error
