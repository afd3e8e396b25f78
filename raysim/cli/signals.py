"""How a signal ends a command that runs scenarios: as Ctrl-C does, with all rows written and run.json true."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from actors.interrupt import ask

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C, a batch system, a lost terminal


@contextmanager
def ending_by_signals() -> Iterator[None]:
    """Within the block, a signal of ENDING ends the command; the exit code is then 128 plus the signal's number.

    A second signal ends the process at once. A signal that is ignored, as SIGHUP is below nohup, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():  # Python lets no other thread handle signals
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    received = []

    def end(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for other in ENDING:
            signal.signal(other, signal.SIG_DFL)
        ask()

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, end)
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(128 + (received or [signal.SIGINT])[0]) from None
    finally:
        if not received:
            for number, handler in before.items():
                signal.signal(number, handler)
