"""A child process that carries out one call after another, without Ray."""

import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from actors.fault import describe
from actors.interrupt import ask
from actors.process import end_copy

INTERRUPT = signal.SIGUSR1  # the signal with which the parent interrupts a call
GRACE_S = 10.0  # seconds that an interrupted call may take to end

Tell = Callable[[Any], Any]  # sends something to the parent process, and returns its answer


class ChildDied(Exception):
    """The child process ended in the middle of a call."""


class ChildFailed(Exception):
    """The function raised an exception that cannot be pickled. The text describes that exception."""


class Child:
    """A child process. The first call starts it, and so does the first call after it has died."""

    def __init__(self) -> None:
        self._process: Any = None

    def call(self, function: Callable[..., Any], *args: Any, tell: Tell) -> Any:
        """Calls function(*args, tell=...) in the child process, and returns what it returns or raises what it raises.

        tell: called in this process with whatever the function passes to its own `tell`, which then returns the answer.
        Messages and answers must be picklable. Function and arguments may also be of classes of a script or notebook.
        Raises ChildDied if the process ends meanwhile.
        """
        if self._process is None or not self._process.is_alive():
            self._start()
        try:
            self._here.send_bytes(cloudpickle.dumps((function, args)))
            while True:
                kind, content = self._here.recv()
                if kind == "told":
                    self._here.send(self._answer(tell, content))
                elif kind == "returned":
                    return content
                else:
                    raise content
        except (EOFError, ConnectionError) as error:
            if self._process is None:  # `tell` raised it, and the process was closed for that
                raise
            self._process.join()
            raise ChildDied(f"its process ended with {spelled(self._process.exitcode)}") from error

    def _answer(self, tell: Tell, content: Any) -> Any:
        try:
            return tell(content)
        except BaseException:
            self.close()  # else the child would wait for the answer for ever
            raise

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork of a process with threads can hang
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,), daemon=True)
        self._process.start()
        there.close()  # else the death of the process would leave the pipe open

    def interrupt(self) -> None:
        """Raises KeyboardInterrupt in the process, which ends it. Another thread may be in the middle of a call."""
        if (process := self._process) is not None and process.is_alive():
            os.kill(process.pid, INTERRUPT)

    def close(self) -> None:
        """Ends the process, even in the middle of a call, which may still tidy up."""
        if self._process is not None:
            self.interrupt()
            self._process.join(GRACE_S)
            self._process.kill()
            self._process.join()
            self._process = None


def spelled(exit_code: int) -> str:
    """Returns an exit code as text, with the name of the signal that ended the process."""
    return f"exit code {exit_code}" if exit_code >= 0 else f"signal {signal.Signals(-exit_code).name}"


def _serve(pipe: Connection) -> None:
    """What the child process runs.

    It ignores what reaches it together with its parent, such as Ctrl-C, because the parent decides when it ends.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(INTERRUPT, lambda *_: ask())

    def tell(content: Any) -> Any:
        pipe.send(("told", content))
        return pipe.recv()

    process = os.getpid()
    try:
        while True:
            answer = _carry_out(pipe, tell)
            end_copy(process)
            pipe.send(answer)
    except (EOFError, ConnectionError, KeyboardInterrupt):  # nobody is left to call, or the work is to end
        return


def _carry_out(pipe: Connection, tell: Tell) -> tuple[str, Any]:
    """Waits for a call, carries it out, and returns the answer."""
    try:
        function, args = pipe.recv()
        return "returned", function(*args, tell=tell)
    except (EOFError, ConnectionError):
        raise
    except (Exception, SystemExit) as error:  # whatever the function raises is raised again in the parent
        return "raised", _portable(error)


def _portable(error: Exception | SystemExit) -> BaseException:
    """Returns the exception, or ChildFailed with its text if it cannot be sent to the parent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # classes with an unusual __init__, and those that hold open files and the like
        return ChildFailed(describe(error))
    return ChildFailed(describe(error)) if isinstance(error, SystemExit) else error
