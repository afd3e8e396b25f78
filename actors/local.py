"""A pool of worker processes on this machine, without Ray."""

import atexit
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import wait
from typing import Any, NamedTuple

from actors.child import Child, ChildDied, Raised, Tell
from actors.host import Failure, Host, Ready
from actors.job import Content, Job, Outcome, Setup, Value, values_of
from actors.parcel import Folders, Parcel, owned
from actors.pool import ATTEMPTS, Group, JobFailed, Pool
from actors.process import Process, allowing
from actors.queue import Queue, least_busy


class Order(NamedTuple):
    """A method of `Host` that the worker's host of a group is to call."""

    group: str
    method: Callable[..., Any]
    arguments: tuple[Any, ...]
    parcels: tuple[Parcel, ...] = ()  # further arguments


class Hosts:
    """What each process of the pool has: a host for each group."""

    def __init__(self, folders: Folders, gpu: str) -> None:
        self._folders, self._gpus = folders, [gpu] if gpu else []
        self._hosts: dict[str, Host] = {}

    def __call__(self, order: Order, tell: Tell) -> tuple[Any, list[Parcel]]:
        """Follows an order. Returns the host's answer, and the contents of the values that the job leaves."""
        host = self._hosts.setdefault(order.group, Host(partial(Process.this, gpus=self._gpus)))
        answer = order.method(host, *order.arguments, *(parcel.open() for parcel in order.parcels))
        answer, *contents = answer if type(answer) is tuple else (answer,)
        return answer, [self._folders.pack(content) for content in contents]


class LocalWorker(Child):
    """A process of the pool, and what it has to do."""

    def __init__(self, number: int, gpu: str, folders: Folders) -> None:
        """gpu: the number of its GPU; empty without one."""
        visible = {"CUDA_VISIBLE_DEVICES": gpu} if gpu else {}
        super().__init__(Hosts(folders, gpu), visible, folders.delete)
        self.name, self.number = f"local-{number}", number
        self.process: Process | None = None  # None until its first set-up is done
        self.calls: deque[Job[Any, Any] | Order] = deque()  # what it was given and has not answered; no Job: a set-up
        self.start()

    @property
    def is_set_up(self) -> bool:
        """Whether it can be given jobs."""
        return all(isinstance(call, Job) for call in self.calls)

    @property
    def jobs(self) -> list[Job[Any, Any]]:
        """The jobs that it was given and has not done."""
        return [call for call in self.calls if isinstance(call, Job)]

    def follow(self, order: Order, job: Job[Any, Any] | None = None) -> None:
        """Sends an order. job: what it is for; None for a set-up."""
        self.calls.append(job or order)
        self.send(order)


class LocalPool(Pool):
    """A pool of processes on this machine. Each process works for all groups, however many workers these ask for.

    A process that dies is replaced, and does its jobs again. No value is lost with it.
    """

    def __init__(self, gpus: Sequence[str]) -> None:
        """gpus: for each process, the number of the GPU that it may use; empty for none."""
        super().__init__()
        self._gpus = gpus
        self._folders = Folders()
        self._queue = Queue()
        self._beginning: list[Order] = []  # what each process does first
        self._deaths = 0  # of processes in a row that died before they were set up
        self._end = math.inf  # when `wait` raises KeyboardInterrupt, by time.monotonic
        self._workers: list[LocalWorker] = []
        atexit.register(self.close)  # for generators that nobody has closed
        for number in range(len(gpus)):
            self._workers.append(self._make(number))

    # --- workers ------------------------------------------------------------------------------------------------------

    def start(self, group: Group) -> None:
        self._begin(Order(group.name, Host.open, (group.factory,)))

    def set_up(self, setups: dict[str, Setup]) -> None:
        for group, setup in setups.items():
            self._begin(Order(group, Host.set_up, (setup,), _parcels(values_of(setup))))
        while not all(worker.is_set_up for worker in self._workers):
            self.wait()

    def _begin(self, order: Order) -> None:
        self._beginning.append(order)
        for worker in self._workers:
            worker.follow(order)

    def _make(self, number: int) -> LocalWorker:
        worker = LocalWorker(number, self._gpus[number], self._folders)
        for order in self._beginning:
            worker.follow(order)
        return worker

    def size(self, group: str) -> int:
        return len(self._workers)

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def _take_on(self, job: Job[Any, Any]) -> None:
        self._queue.add(job)
        self._hand_out()

    def put(self, content: Any) -> Value[Any]:
        return Value(owned(self._folders.pack(content)))

    def get(self, value: Value[Content]) -> Content:
        parcel: Any = value.content
        content: Content = parcel.open()
        return content

    def _hand_out(self) -> None:
        """Gives ready jobs to processes as long as some can take one. Those of the group that was started last, which
        is the server's, come first, because clients' wait for them."""
        groups = [order.group for order in self._beginning if order.method is Host.open]
        for group in reversed(groups):
            while job := self._queue.first(group):
                few = sum(map(self._queue.ready, groups)) < len(self._workers)
                there = [worker for worker in self._workers if worker.is_set_up]
                found = least_busy(there, idle=few or bool(job.attempts))
                if not found:
                    return  # few jobs wait for an idle process, lest they queue behind another while one falls idle
                self._queue.give(job)
                asked = (job.request, None, [1] * len(job.needs))
                found[0].follow(Order(group, Host.call, asked, _parcels(job.needs)), job)

    # --- what comes back ----------------------------------------------------------------------------------------------

    def wait(self) -> None:
        if (left := self._end - time.monotonic()) <= 0:
            raise KeyboardInterrupt
        of = {worker.pipe: worker for worker in self._workers if worker.calls}
        if not of:
            raise RuntimeError("wait: there must be a running job or set-up, got none")
        with allowing():
            came = wait(list(of), None if math.isinf(left) else left)
        for pipe in came:
            self._take(of[pipe])  # type: ignore[index]  # of what was waited for
        self._hand_out()

    def _take(self, worker: LocalWorker) -> None:
        """Takes an answer of a process, or replaces it if it has died."""
        try:
            message = worker.receive()
        except ChildDied as death:
            self._replace(worker, str(death))
            return
        call = worker.calls.popleft()
        answer, parcels = (message.failure, []) if isinstance(message, Raised) else message
        if isinstance(answer, Failure):
            label = call.label if isinstance(call, Job) else f"{call.group}-{worker.number}: set-up"
            raise JobFailed(label, *answer)
        if isinstance(call, Job):
            self._finish(call, worker, answer, parcels)
        elif isinstance(answer, Ready):
            self._deaths *= not worker.is_set_up
            self.machines[f"{call.group}-{worker.number}"] = answer.machine
            self.processes[worker.name] = worker.process = answer.process

    def _finish(self, job: Job[Any, Any], worker: LocalWorker, done: Any, parcels: Sequence[Parcel]) -> None:
        for place, (value, parcel) in enumerate(zip(job.values, parcels, strict=True)):
            value.content = value.former.content if place in done.passed and value.former else owned(parcel)
        job.end(Outcome(done.result, worker.name, done.took, worker.process))
        self._queue.release(job)

    def _replace(self, dead: LocalWorker, cause: str) -> None:
        """Replaces a process that has died, and puts its jobs back into the queue.

        Raises JobFailed if the job that it was at has ended too many processes, or if none lives to be set up.
        """
        if dead.is_set_up:
            dead.jobs[0].attempts += 1
        else:
            self._deaths += 1
        if self._deaths == ATTEMPTS:
            raise JobFailed(f"{dead.name}: set-up", f"it died {ATTEMPTS} times; the last time: {cause}", "")
        for job in dead.jobs:
            if job.attempts == ATTEMPTS:
                raise JobFailed(job.label, f"its worker died {ATTEMPTS} times; the last time: {cause}", "")
            self._queue.add(job)
        self.processes.pop(dead.name, None)  # the one after it may not be ready before the run ends
        self._workers[dead.number] = self._make(dead.number)

    # --- the rest -----------------------------------------------------------------------------------------------------

    def spare(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def close(self) -> None:
        for worker in self._workers:
            worker.end()
        self._workers = []
        self._folders.delete()
        atexit.unregister(self.close)


def _parcels(values: Sequence[Value[Any]]) -> tuple[Parcel, ...]:
    return tuple(value.content for value in values)
