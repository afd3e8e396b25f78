"""A child process that carries out one call after another, without Ray."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

Tell = Callable[[Any], Any]  # with which the function sends something to the parent process, and gets an answer


class ChildDied(Exception):
    """The child process ended in the middle of a call."""


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
            self._process.join()
            raise ChildDied(f"its process ended with exit code {self._process.exitcode}") from error

    def _answer(self, tell: Tell, content: Any) -> Any:
        try:
            return tell(content)
        except BaseException:
            self.close()  # the child would wait for the answer for ever
            raise

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork of a process with threads can hang
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,), daemon=True)
        self._process.start()
        there.close()  # else the death of the process would leave the pipe open

    def close(self) -> None:
        """Ends the process, even in the middle of a call."""
        if self._process is not None:
            self._process.terminate()
            self._process.join()
            self._process = None


def _serve(pipe: Connection) -> None:
    """What the child process runs. It ignores Ctrl-C, which reaches it too: the parent decides when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def tell(content: Any) -> Any:
        pipe.send(("told", content))
        return pipe.recv()

    while True:
        try:
            function, args = pipe.recv()
        except EOFError:  # nobody is left to call
            return
        try:
            answer = ("returned", function(*args, tell=tell))
        except KeyboardInterrupt:  # raised by `tell`, to end the work and the process
            return
        except Exception as error:  # whatever the function raises is raised again in the parent
            answer = ("raised", error)
        pipe.send(answer)
