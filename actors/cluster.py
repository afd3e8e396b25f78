"""A pool on Ray. It lives in the scheduler actor. Only that submits jobs, so it owns all values that jobs leave."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError
from ray.util.metrics import Gauge

from actors.gang import JOIN_S, Address, Seat
from actors.host import Done, Failure, Host
from actors.job import Content, Job, Left, Outcome, Request, Result, Setup, Value, values_of
from actors.machine import Machine
from actors.placement import Placement
from actors.pool import Group, JobFailed
from actors.pulse import Pulse, interval
from actors.queue import Queue

DEPTH = 2  # jobs that a worker has at a time: the arguments of the next travel while the first runs
ATTEMPTS = 3  # a run fails if so many workers die with the same job, or in a row in the same set-up
PATIENCE_S = 600.0
POLL_S = 0.5  # how often `wait` looks for an interruption


@dataclass(eq=False)
class _Worker:
    name: str
    actor: Any  # Ray's handle of the actor
    pulse: Pulse
    deaths: int = 0  # how many workers before it died in its place
    failures: int = 0  # how many of the last of those died one after another in their set-up
    jobs: list[Job[Any, Any]] = field(default_factory=list)  # given to it and not done
    setup: list[Any] = field(default_factory=list)  # Ray's references to set-ups that are not done

    @property
    def free(self) -> int:
        """How many more jobs it can be given.

        A job whose worker died runs alone, so that another death shows whether that job is the cause.
        """
        return 0 if any(job.attempts for job in self.jobs) else DEPTH - len(self.jobs)


class RayHost(Host):
    """The class of the actors: a Host that knows its node."""

    @ray.method(concurrency_group="pings")
    def answer(self) -> None:
        """Answers a ping, in a thread of its own."""

    def address(self) -> Address:
        """Opens a door for the gang of which this is the first member, and returns its address."""
        return self.listen(ray.util.get_node_ip_address())

    def where(self) -> str:
        """Returns the node, where there are several: a file may be on some of them only."""
        several = sum(node["Alive"] for node in ray.nodes()) > 1
        return f"on node {ray.util.get_node_ip_address()}" if several else ""


class RayPool:
    """A pool on Ray. Its workers are actors named `<run>/<group>-<number>`. Ready jobs run by priority."""

    def __init__(
        self,
        run: str,
        placement: Placement,
        patience_s: float | None = PATIENCE_S,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """patience_s: how long a worker may not answer; None: for ever. environment: variables of its process."""
        self._run, self._placement, self._patience_s = run, placement, patience_s
        self._environment = dict(environment or {})
        self._listened = time.monotonic()  # when it last looked who answers
        self.warnings: list[str] = []
        self._interrupted = False
        self._groups: dict[str, Group] = {}
        self._workers: dict[str, list[_Worker]] = {}
        self._setups: dict[str, list[Setup]] = {}  # by group
        self._queue = Queue()
        self._running: dict[Any, tuple[_Worker, Job[Any, Any] | None]] = {}  # by reference to the result; None: set-up
        self._addresses: dict[str, Address | None] = {}  # by group: where its gang meets; None: a gang of one
        self._gauges: dict[str, Gauge] = {}
        self.machines: dict[str, Machine] = {}

    # --- workers ------------------------------------------------------------------------------------------------------

    def start(self, group: Group) -> None:
        self._groups[group.name] = group
        self._setups[group.name] = []
        self._workers[group.name] = [self._make(group, number) for number in range(group.workers)]

    def _make(self, group: Group, number: int, deaths: int = 0, failures: int = 0) -> _Worker:
        name = f"{group.name}-{number}"
        # Ray must not restart it or run its tasks again: this pool does that, and knows which jobs are suspect.
        remote: Any = ray.remote  # its types lack this option
        actor = remote(concurrency_groups={"pings": 1})(RayHost).options(
            name=f"{self._run}/{name}" + (f".{deaths}" if deaths else ""),
            max_restarts=0,
            max_task_retries=0,
            **self._placement.options(name, group),
            **({"runtime_env": {"env_vars": self._environment}} if self._environment else {}),
        )
        handle = actor.remote(group.factory)
        return _Worker(name, handle, Pulse(name, handle.answer.remote, is_there), deaths, failures)

    def set_up(self, setups: dict[str, Setup]) -> None:
        for group, setup in setups.items():
            self._setups[group].append(setup)
            for worker in self._workers[group]:
                self._set_up(worker, setup)
        while any(worker.setup for group in setups for worker in self._workers[group]):
            self.wait()

    def _set_up(self, worker: _Worker, setup: Setup) -> None:
        reference = worker.actor.set_up.remote(setup, *_contents(setup))
        worker.setup.append(reference)
        self._running[reference] = (worker, None)

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def submit(
        self, group: str, request: Request[Result, Left], *, priority: tuple[int, ...] = (), label: str = ""
    ) -> Job[Result, Left]:
        job = Job.of(group, request, priority, label)
        self._queue.add(job)
        self._hand_out()
        return job

    def put(self, content: Any) -> Value[Any]:
        return Value(ray.put(content))

    def get(self, value: Value[Content]) -> Content:
        reference: Any = value.content
        content: Content = ray.get(reference)
        return content

    def _hand_out(self) -> None:
        """Gives ready jobs to workers, in each group until its first job finds no free worker."""
        for group, workers in self._workers.items():
            while job := self._queue.first(group):
                chosen = self._gang(workers) if job.together else self._least_busy(group, workers, job)
                if not chosen:
                    break
                self._queue.pop(group)
                self._give(job, chosen)

    def _gang(self, workers: list[_Worker]) -> list[_Worker]:
        """Returns all workers for a job of a gang, or none while any is busy: in a gang, each waits for the others."""
        return [] if any(worker.jobs or worker.setup for worker in workers) else list(workers)

    def _least_busy(self, group: str, workers: list[_Worker], job: Job[Any, Any]) -> list[_Worker]:
        """Returns the worker that gets a ready job, in a list; an empty list if the job must wait.

        While many jobs are ready, each worker holds a next job beside the one that it runs. When fewer are ready than
        there are workers, a job waits for an idle worker, lest it queues behind another job while a worker falls idle.
        """
        worker = max(workers, key=lambda worker: worker.free)
        few = self._queue.ready(group) < len(workers)
        return [] if worker.free == 0 or (worker.jobs and (few or job.attempts)) else [worker]

    def _give(self, job: Job[Any, Any], workers: list[_Worker]) -> None:
        """Gives a job to one worker, or to all workers of a gang. Only the first of a gang leaves values."""
        try:
            seats = self._seats(job.group, workers) if job.together else [None]
        except (RayActorError, GetTimeoutError) as error:
            self._queue.push(job)
            self._replace(workers[0], str(error))
            return
        assert job.request is not None
        contents = _contents(job.request)
        for worker, seat in zip(workers, seats, strict=True):
            values = 0 if seat and seat.rank else len(job.values)
            call = worker.actor.call.options(name=job.name, num_returns=1 + values)
            answer = call.remote(job.request, seat, *contents)
            result, *left = answer if values else [answer]
            for value, content in zip(job.values, left, strict=False):
                value.content = content
            worker.jobs.append(job)
            self._running[result] = (worker, job)

    def _seats(self, group: str, workers: list[_Worker]) -> list[Seat]:
        if group not in self._addresses:
            self._addresses[group] = (
                ray.get(workers[0].actor.address.remote(), timeout=JOIN_S) if len(workers) > 1 else None
            )
        return [Seat(rank, len(workers), self._addresses[group]) for rank in range(len(workers))]

    # --- what comes back ----------------------------------------------------------------------------------------------

    def wait(self) -> None:
        running = list(self._running)
        if not running:
            raise RuntimeError("wait: there must be a running job or set-up, got none")
        while not self._interrupted and not ray.wait(running, num_returns=1, timeout=POLL_S)[0]:
            if self._listen():
                return
        if self._interrupted:
            raise KeyboardInterrupt
        done, _ = ray.wait(running, num_returns=len(running), timeout=0)
        for reference in done:
            if reference in self._running:  # not if its worker turned out to be dead
                self._take(reference)
        self._hand_out()
        self._listen()

    def _listen(self) -> bool:
        """Replaces workers that have not answered for too long. Returns whether it found any."""
        now = time.monotonic()
        passed = now - self._listened
        if self._patience_s is None or passed < interval(self._patience_s):
            return False
        self._listened, found = now, False
        for worker in list(itertools.chain.from_iterable(self._workers.values())):
            if warning := worker.pulse.beat(passed, self._patience_s):
                self.warnings.append(warning)
            if worker.pulse.silent_s >= self._patience_s and worker in self._groups_of(worker)[0]:
                self._replace(worker, f"{worker.name} has not answered for {worker.pulse.silent_s:.0f} s")
                found = True
        if found:
            self._hand_out()
        return found

    def _take(self, reference: Any) -> None:
        worker, job = self._running[reference]
        label = job.label if job else f"{worker.name}: set-up"
        try:
            result = ray.get(reference)
        except RayTaskError as error:  # caught first: if an argument failed, the error is of both classes
            raise JobFailed(label, str(error.cause), str(error)) from error
        except RayActorError as error:
            self._replace(worker, str(error))
            return
        except RayError as error:
            raise JobFailed(label, f"{type(error).__name__}: {error}", "") from error
        if isinstance(result, Failure) and result.broken:
            self._replace(worker, result.cause)
            return
        if isinstance(result, Failure) and not (job and job.done):  # done: by the first of a gang
            raise JobFailed(label, result.cause, result.traceback)
        del self._running[reference]
        if job is None:
            worker.setup.remove(reference)
            self.machines[worker.name] = result
        else:
            worker.jobs.remove(job)
            if not job.together or worker is self._workers[job.group][0]:  # a gang's answer is its first member's
                self._finish(job, worker, result)

    def _finish(self, job: Job[Any, Any], worker: _Worker, done: Done) -> None:
        if done.kept:
            assert job.request is not None  # it was not done until now
            given = values_of(job.request)
            for place, number in done.kept.items():
                job.values[place].content = given[number].content
        job.end(Outcome(done.result, worker.name, done.took))
        self._queue.release(job)

    def _replace(self, dead: _Worker, cause: str) -> None:
        """Replaces a dead worker, and puts its jobs back into the queue.

        If its gang has met, all members are replaced, because their connections are lost.
        """
        workers, group = self._groups_of(dead)
        gone = list(workers) if self._addresses.pop(group.name, None) else [dead]
        suspects = [] if dead.setup else dead.jobs  # if the set-up had not ended, none of its jobs ran
        for worker in gone:
            ray.kill(worker.actor)  # it may be alive but out of reach, and would keep its resources
            self._running = {ref: entry for ref, entry in self._running.items() if entry[0] is not worker}
            self._make_again(worker, workers, group, cause)
        for job in dict.fromkeys(job for worker in gone for job in worker.jobs if not job.done):
            job.attempts += job in suspects
            if job.attempts == ATTEMPTS:
                raise JobFailed(job.label, f"its worker died {ATTEMPTS} times; the last time: {cause}", "")
            self._queue.push(job)

    def _make_again(self, worker: _Worker, workers: list[_Worker], group: Group, cause: str) -> None:
        number = workers.index(worker)
        failures = worker.failures + 1 if worker.setup else 0
        if failures == ATTEMPTS:
            raise JobFailed(f"{worker.name}: set-up", f"it died {ATTEMPTS} times; the last time: {cause}", "")
        workers[number] = self._make(group, number, worker.deaths + 1, failures)
        for setup in self._setups[group.name]:
            self._set_up(workers[number], setup)

    def _groups_of(self, worker: _Worker) -> tuple[list[_Worker], Group]:
        name = worker.name.rpartition("-")[0]
        return self._workers[name], self._groups[name]

    # --- the rest -----------------------------------------------------------------------------------------------------

    def gauge(self, readings: dict[str, float]) -> None:
        for name, reading in readings.items():
            if name not in self._gauges:
                self._gauges[name] = Gauge(f"raysim_{name}", tag_keys=("run",))
                self._gauges[name].set_default_tags({"run": self._run})
            self._gauges[name].set(reading)

    def interrupt(self) -> None:
        """Ends the run: from now on, `wait` raises KeyboardInterrupt. Called from another thread."""
        self._interrupted = True

    def close(self) -> None:
        for worker in itertools.chain.from_iterable(self._workers.values()):
            ray.kill(worker.actor)
        self._workers.clear()
        self._running.clear()


def _contents(request: Request[Any, Any] | Setup) -> list[Any]:
    """Returns Ray's references to the contents of a request's values. As arguments of a call, Ray resolves them."""
    return [value.content for value in values_of(request)]


def is_there(reference: Any) -> bool:
    """Whether an answer is there, or the actor that was asked has died."""
    return bool(ray.wait([reference], num_returns=1, timeout=0, fetch_local=False)[0])
