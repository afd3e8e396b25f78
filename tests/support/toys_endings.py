"""Algorithms that end in bad ways, or not at all."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from toys import Counting

from raysim.algorithms import Arrival, Population, Record


class Ends(Counting):
    """Each client ends its process, or raises an exception."""

    name: str = "ends"
    how: str

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        if self.how == "die":
            os._exit(7)
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise {"SystemExit": SystemExit, "OSError": OSError, "KeyError": KeyError}[self.how](3)


class Pressed(Counting):
    """Ctrl-C is pressed when updates of a round from 1 on are weighed."""

    name: str = "pressed"

    def weigh(self, arrivals: Sequence[Arrival], population: Population) -> list[float]:
        if arrivals[0].round:
            raise KeyboardInterrupt
        return super().weigh(arrivals, population)


class Stuck(Counting):
    """A client makes a mark, trains for ever, and ignores Ctrl-C."""

    name: str = "stuck"
    mark: str

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        Path(self.mark).touch()
        while True:
            with suppress(KeyboardInterrupt):
                time.sleep(600)
