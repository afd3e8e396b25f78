"""A pool on Ray, which lives in the scheduler actor. Only this actor submits jobs, so it owns all values that jobs
leave."""

import math
import time
from typing import Any

import ray
from ray.exceptions import ObjectLostError, OutOfMemoryError, RayActorError, RayError, RayTaskError

from actors.actors import Actors, end
from actors.crew import Crew, Crews
from actors.host import Done, Failure, Ready
from actors.job import Content, Job, Outcome, Setup, Value
from actors.placement import is_alive
from actors.pool import Group, JobFailed, Pool, ValuesLost
from actors.queue import Queue, Worker, choose

POLL_S = 0.5  # how often `wait` looks for an interruption


class RayPool(Pool):
    """A pool on Ray, of one run. Ready jobs run by priority."""

    def __init__(self, actors: Actors, wait_s: float = 0.0) -> None:
        """actors: makes the workers. wait_s: how long, beyond two minutes, no worker may have work while others wait
        for a node."""
        super().__init__()
        self._actors = actors
        self._interrupted = False
        self._end = math.inf  # when `wait` raises KeyboardInterrupt, by time.monotonic
        self._queue = Queue()
        self._crews = Crews(self._queue, self.warnings.append, wait_s)

    # --- workers ------------------------------------------------------------------------------------------------------

    def start(self, group: Group) -> None:
        self._crews[group.name] = Crew(group, self._actors, self.warnings.append)

    def set_up(self, setups: dict[str, Setup]) -> None:
        for group, setup in setups.items():
            self._crews[group].set_up(setup)
        while not all(self._crews[group].ready for group in setups):
            self._turn()

    def size(self, group: str) -> int:
        return max(1, sum(worker.is_set_up for worker in self._crews[group].workers))

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def _take_on(self, job: Job[Any, Any]) -> None:
        self._queue.add(job)
        self._hand_out()

    def put(self, content: Any) -> Value[Any]:
        return Value(ray.put(content))

    def get(self, value: Value[Content]) -> Content:
        reference: Any = value.content
        try:
            content: Content = ray.get(reference)
        except ObjectLostError as error:
            raise ValuesLost("scheduler", f"a value was lost with its node: {error}", "") from error
        return content

    def _hand_out(self) -> None:
        """Gives jobs to workers as long as some worker can take one. A job that is given may let others follow it."""
        while any(self._hand_out_one(crew) for crew in self._crews.values()):
            pass

    def _hand_out_one(self, crew: Crew) -> bool:
        """Gives a job to a worker, or to all workers of a gang. Returns False if none can be given now."""
        job, workers = choose(self._queue, crew.group.name, crew.workers)
        if job and workers:
            self._queue.give(job)
            self._give(job, crew, workers)
        return bool(workers)

    def _give(self, job: Job[Any, Any], crew: Crew, workers: list[Worker]) -> None:
        """Gives a job to one worker, or to all workers of a gang. Only the first of a gang leaves values."""
        seats = crew.seats() if len(workers) > 1 else [None]
        assert job.request is not None
        candidates = [value.candidates for value in job.needs]
        numbers = [len(contents) for contents in candidates]
        contents = [content for found in candidates for content in found]  # as arguments of a call, Ray resolves them
        for worker, seat in zip(workers, seats, strict=True):
            values = 0 if seat and seat.rank else len(job.values)
            call = worker.actor.call.options(name=job.name, num_returns=1 + values)
            answer = call.remote(job.request, seat, numbers, *contents)
            result, *left = answer if values else [answer]
            for value, content in zip(job.values, left, strict=False):
                value.content = content
            worker.calls[result] = job

    # --- what comes back ----------------------------------------------------------------------------------------------

    def wait(self) -> None:
        while not self._turn():
            pass

    def _turn(self) -> bool:
        """Waits for an answer for POLL_S at most, takes what has come, and looks after the workers.

        Returns whether an answer came. Raises KeyboardInterrupt after `interrupt`.
        """
        running = [reference for worker in self._crews.workers for reference in worker.calls]
        if not running:
            raise RuntimeError("wait: there must be a running job or set-up, got none")
        came = not self._interrupted and bool(ray.wait(running, num_returns=1, timeout=POLL_S)[0])
        if self._interrupted or time.monotonic() > self._end:
            raise KeyboardInterrupt
        if came:
            self._take_all(running)
            self._hand_out()
        self._crews.look()
        return came

    def _take_all(self, running: list[Any]) -> None:
        """Takes the answers that have come. running: the references to all."""
        done, _ = ray.wait(running, num_returns=len(running), timeout=0)
        of = {reference: worker for worker in self._crews.workers for reference in worker.calls}
        for reference in sorted(done, key=lambda reference: self._order_of(of[reference].calls[reference])):
            worker = of[reference]
            if reference not in worker.calls or not self._crews.has(worker):
                continue  # the worker turned out to be dead, or the job must be done again
            job = worker.calls[reference]
            if not (job and self._queue.waits(job)):  # else the job that leaves its value gives the reason
                self._take(worker, reference)

    def _order_of(self, job: Job[Any, Any] | None) -> int:
        return self._queue.order(job) if job else -1  # a set-up

    def _take(self, worker: Worker, reference: Any) -> None:
        job = worker.calls[reference]
        label = job.label if job else f"{worker.name}: set-up"
        try:
            result = ray.get(reference)
        except ObjectLostError as error:  # caught first, because the error is of both classes if an argument was lost
            self._crews.lost(worker, reference, error)
            return
        except RayTaskError as error:
            raise JobFailed(label, str(error.cause), str(error)) from error
        except RayActorError as error:
            self._crews.replace(worker, str(error), blame=worker.node_id is None or is_alive(worker.node_id))
            return
        except OutOfMemoryError as error:
            self._crews.low_on_memory(worker, error)
            return
        except RayError as error:
            raise JobFailed(label, f"{type(error).__name__}: {error}", "") from error
        if isinstance(result, Failure) and not (job and job.done):  # already done, by the first member of the gang
            raise JobFailed(label, *result)
        del worker.calls[reference]
        self._crews.moved = time.monotonic()
        if job is None:
            self._came(worker, result)
        elif not job.together or worker is self._crews.of(worker).workers[0]:  # only the first member's answer counts
            self._finish(job, worker, result)

    def _came(self, worker: Worker, answer: str | Ready | None) -> None:
        """Notes what a worker reports: first its node, and after its set-up what its process is."""
        if isinstance(answer, str):
            worker.node_id = answer
        elif answer:
            self.machines[worker.name] = answer.machine
            self.processes[worker.name] = worker.process = answer.process

    def _finish(self, job: Job[Any, Any], worker: Worker, done: Done) -> None:
        for place in done.passed:
            former = job.values[place].former
            assert former is not None
            job.values[place].content = former.content
        job.end(Outcome(done.result, worker.name, done.took, worker.process))
        self._queue.release(job)

    # --- the rest -----------------------------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Ends the run: from now on, `wait` raises KeyboardInterrupt. Called from another thread."""
        self._interrupted = True

    def spare(self, seconds: float) -> None:
        self._interrupted, self._end = False, time.monotonic() + seconds

    def rest(self) -> None:
        """Ends the pool. Its actors rest until another one takes them, as far as the run left them as they were."""
        self._actors.rest(list(self._crews.workers))
        self._crews.clear()

    def close(self) -> None:
        end(self._crews.workers)
        self._crews.clear()
