"""Algorithms that end in bad ways, or not at all."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from toys import Counting

from raysim.algorithms import Record


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


class Stuck(Counting):
    """A client makes a mark, trains for ever, and ignores Ctrl-C."""

    name: str = "stuck"
    mark: str

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        Path(self.mark).touch()
        while True:
            with suppress(KeyboardInterrupt):
                time.sleep(600)
