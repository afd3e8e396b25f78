"""A process of this machine, without Ray, that follows one order after another: of a run, or a whole run of a sweep.

It is a new interpreter, not a fork, which can hang, nor one of multiprocessing, which would run the user's script anew.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

import cloudpickle

from actors.fault import describe
from actors.host import Failure
from actors.process import ask

INTERRUPT = signal.SIGUSR1  # the signal with which the parent interrupts an order
GRACE_S = 10.0  # seconds that an interrupted order may take to end
_SERVE = "import sys; sys.path[:] = {path!r}; from actors.child import serve; serve({pipe})"

Tell = Callable[[Any], Any]  # sends something to the parent process, and returns its answer
Handler = Callable[[Any, Tell], Any]  # follows an order, and returns the answer


class ChildDied(Exception):
    """The child process ended in the middle of an order."""


class ChildFailed(Exception):
    """The handler raised an exception that cannot be pickled. The text describes that exception."""


class Told(NamedTuple):
    """What the handler tells while it follows an order. The parent answers it."""

    content: Any


class Raised(NamedTuple):
    """What the handler raised."""

    error: BaseException
    failure: Failure  # the same, with its traceback as text


class Child:
    """A child process. The first call starts it, and so does the first call after it has died.

    It ends when its parent does, by whatever. All that it starts ends with it.
    """

    def __init__(
        self, handler: Handler, environment: Mapping[str, str] | None = None, last: Callable[[], None] | None = None
    ) -> None:
        """handler: picklable; it may keep state from one order to the next. environment: variables of the process.
        last: called in the process if its parent is gone."""
        self._begins_with, self._environment = (handler, last), dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.pipe, there = Pipe()
        code = _SERVE.format(path=sys.path, pipe=there.fileno())
        # In its own session, no Ctrl-C reaches it: the parent decides when it ends.
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            pass_fds=[there.fileno()],
            start_new_session=True,
            env={**os.environ, **self._environment},
        )
        there.close()  # else the death of the process would leave the pipe open
        self.send(self._begins_with)

    def send(self, order: Any) -> None:
        """Sends an order, or an answer to what was told, which may hold objects of classes of a script or notebook."""
        with suppress(OSError):  # it has died, which is found out when its answer is waited for
            self.pipe.send_bytes(cloudpickle.dumps(order))

    def receive(self) -> Any:
        """Waits for the answer to an order, and returns it, or Raised or Told. Raises ChildDied if it dies before."""
        try:
            message = self.pipe.recv_bytes()
        except (EOFError, OSError) as error:
            raise ChildDied(f"its process ended with {self.end()}") from error
        return pickle.loads(message)

    def call(self, order: Any, tell: Tell) -> Any:
        """Returns what the handler answers to an order, or raises what it raises.

        tell: called in this process with whatever the handler tells; it returns the answer to that. Raises ChildDied if
        the process ends meanwhile.
        """
        if self._process is None or self._process.poll() is not None:
            self.start()
        self.send(order)
        while isinstance(answer := self.receive(), Told):
            try:
                self.send(tell(answer.content))
            except BaseException:
                self.close()  # else the child would wait for the answer for ever
                raise
        if isinstance(answer, Raised):
            raise answer.error
        return answer

    def interrupt(self) -> None:
        """Raises KeyboardInterrupt in the process, which ends it. Another thread may be in the middle of a call."""
        if (process := self._process) is not None:
            process.send_signal(INTERRUPT)  # nothing happens if it has died

    def close(self) -> None:
        """Ends the process, even in the middle of a call, which may still tidy up."""
        if (process := self._process) is not None:
            self.interrupt()
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
            self.end()

    def end(self) -> str:
        """Ends the process and all that it has started, at once. Returns how it ended, with the name of a signal."""
        process, self._process = self._process, None
        if process is None:
            return "no exit code"
        if process.poll() is None:  # else another process may have its number by now
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


# --- in the process ---------------------------------------------------------------------------------------------------


def serve(pipe: int) -> None:
    """What the process runs. pipe: the file descriptor of its end of the pipe."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a batch system sends them to all processes
        signal.signal(number, signal.SIG_IGN)
    signal.signal(INTERRUPT, lambda *_: ask())
    connection = Connection(pipe)
    orders: SimpleQueue[bytes] = SimpleQueue()

    def tell(content: Any) -> Any:
        connection.send_bytes(cloudpickle.dumps(Told(content)))
        return pickle.loads(orders.get())

    try:
        handler, last = pickle.loads(connection.recv_bytes())
        Thread(target=_receive, args=(connection, orders, last), daemon=True).start()
        while True:
            answer = _answer(handler, orders.get(), tell)
            with suppress(OSError):  # nobody is left, and the other thread ends the process
                connection.send_bytes(answer)
    except (EOFError, KeyboardInterrupt):
        sys.stdout.flush()
        os._exit(0)


def _receive(connection: Connection, orders: SimpleQueue[bytes], last: Callable[[], None] | None) -> None:
    """Receives orders, so that whoever sends them need not wait. Ends the process when nobody is left to send any."""
    with suppress(EOFError, OSError):
        while True:
            orders.put(connection.recv_bytes())
    if last is not None:
        last()
    os._exit(0)


def _answer(handler: Handler, order: bytes, tell: Tell) -> bytes:
    """Follows an order, and returns the answer, pickled."""
    try:
        answer: bytes = cloudpickle.dumps(handler(pickle.loads(order), tell))
    except (Exception, SystemExit) as error:  # whatever the handler raises, also if its answer cannot be pickled
        answer = cloudpickle.dumps(Raised(_portable(error), Failure.by(error)))
    return answer


def _portable(error: Exception | SystemExit) -> BaseException:
    """Returns the exception, or ChildFailed with its text if it cannot be sent to the parent."""
    try:
        pickle.loads(cloudpickle.dumps(error))
    except Exception:  # classes with an unusual __init__, and those that hold open files and the like
        return ChildFailed(describe(error))
    return ChildFailed(describe(error)) if isinstance(error, SystemExit) else error
