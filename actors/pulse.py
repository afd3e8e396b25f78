"""Whether an actor still answers. A ping is answered beside the actor's jobs, so a long job is no silence."""

from collections.abc import Callable
from typing import Any


class Pulse:
    """Counts for how long an actor has not answered a ping."""

    def __init__(self, name: str, ping: Callable[[], Any], answered: Callable[[Any], bool]) -> None:
        """ping: asks the actor, and returns a reference to its answer. answered: whether that is there."""
        self._name, self._ping, self._answered = name, ping, answered
        self._asked: Any = None  # the reference to an answer that has not come yet
        self._warned = False
        self.silent_s = 0.0

    def beat(self, passed_s: float, patience_s: float) -> str | None:
        """Looks for an answer.

        Returns a warning, once in each silence, when half of the patience is over.
        passed_s: seconds since the last call; long gaps between calls do not count as silence, because then the caller
        stood still.
        """
        if self._asked is None:
            self._asked = self._ping()
        elif self._answered(self._asked):
            self._asked, self._warned, self.silent_s = None, False, 0.0
        else:
            self.silent_s += min(passed_s, 2 * interval(patience_s))
        if self._warned or self.silent_s < patience_s / 2:
            return None
        self._warned = True
        return f"{self._name} has not answered for {self.silent_s:.0f} s; it is given up after {patience_s:g} s"


def interval(patience_s: float) -> float:
    """Returns how many seconds to wait from one beat to the next."""
    return min(max(patience_s / 20, 0.2), 10.0)
