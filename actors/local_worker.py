"""A worker process on this machine, without Ray: what it runs, and what the pool knows of it."""

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from contextlib import suppress
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

import cloudpickle

from actors.child import spelled
from actors.host import Failure, Host
from actors.job import Job
from actors.parcel import Folders, Parcel
from actors.process import Life, Process, end_copy

_WORK = "import sys; sys.path[:] = {path!r}; from actors.local_worker import work; work({pipe}, {gpu!r})"


class Order(NamedTuple):
    """A method of `Host` that the worker's host of a group is to call."""

    group: str
    method: str
    arguments: tuple[Any, ...]
    parcels: tuple[Parcel, ...] = ()  # further arguments


class LocalWorker:
    """A worker process. It has a host for each group, and follows its orders one after another."""

    def __init__(self, number: int, gpu: str, environment: dict[str, str], folders: Folders) -> None:
        """gpu: the number of its GPU; empty without one. environment: variables of the process."""
        self.name, self.number = f"local-{number}", number
        self.life: Life | None = None  # None until its first set-up is done
        self.calls: deque[Job[Any, Any] | Order] = deque()  # what it was given and has not answered; no Job: a set-up
        self.pipe, there = Pipe()
        code = _WORK.format(path=sys.path, pipe=there.fileno(), gpu=gpu)
        # In a session of its own, no Ctrl-C reaches it. It ends when the pipe is closed, by whatever.
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            pass_fds=[there.fileno()],
            start_new_session=True,
            env={**os.environ, **environment, **({"CUDA_VISIBLE_DEVICES": gpu} if gpu else {})},
        )
        there.close()
        self._send(folders)

    @property
    def is_set_up(self) -> bool:
        """Whether it can be given jobs."""
        return all(isinstance(call, Job) for call in self.calls)

    def follow(self, order: Order, job: Job[Any, Any] | None = None) -> None:
        """Sends an order. job: what it is for; None for a set-up."""
        self.calls.append(job or order)
        self._send(order)

    def answer(self) -> tuple[Any, list[Parcel]]:
        """Returns the answer to the first of its calls, and the contents of its values. Raises EOFError or OSError if
        the process has died."""
        answer, parcels = pickle.loads(self.pipe.recv_bytes())
        return answer, parcels

    def _send(self, message: Any) -> None:
        with suppress(OSError):  # it has died, which is found out when its answer is waited for
            self.pipe.send_bytes(cloudpickle.dumps(message))

    def end(self) -> str:
        """Ends the process and all that it has started, and returns how it ended."""
        if self._process.returncode is None:  # else another process may have its number by now
            os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        self.pipe.close()
        return f"its process ended with {spelled(code)}"


def work(pipe: int, gpu: str) -> None:
    """What the process runs."""
    connection, process = Connection(pipe), os.getpid()
    folders: Folders = pickle.loads(connection.recv_bytes())
    orders: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive, args=(connection, orders, folders), daemon=True).start()
    hosts: dict[str, Host] = {}
    while True:
        answer = _answer(orders.get(), hosts, folders, gpu)
        end_copy(process)
        with suppress(OSError):  # the other thread then ends the process
            connection.send_bytes(answer)


def _receive(connection: Connection, orders: SimpleQueue[bytes], folders: Folders) -> None:
    """Receives orders, so that whoever sends them need not wait. Ends the process when nobody is left to send any."""
    with suppress(EOFError, OSError):
        while True:
            orders.put(connection.recv_bytes())
    folders.delete()  # the process that made them may have been killed
    os._exit(0)


def _answer(message: bytes, hosts: dict[str, Host], folders: Folders, gpu: str) -> bytes:
    """Follows an order, and returns the host's answer and parcels with the contents of values, pickled."""
    try:
        order: Order = pickle.loads(message)
        host = hosts.setdefault(order.group, Host(partial(Process.this, gpus=[gpu] if gpu else [])))
        answer = getattr(host, order.method)(*order.arguments, *(parcel.open() for parcel in order.parcels))
        answer, *contents = answer if type(answer) is tuple else (answer,)
        pickled: bytes = cloudpickle.dumps((answer, [folders.pack(content) for content in contents]))
    except (Exception, SystemExit) as error:  # such as a result that cannot be pickled
        pickled = cloudpickle.dumps((Failure.by(error), []))
    return pickled
