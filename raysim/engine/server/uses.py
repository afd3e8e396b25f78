"""Which updates steps have used, on which what an algorithm says to travel may depend."""

from collections import Counter

from raysim.algorithms import Central
from raysim.scenario import Scenario
from raysim.world.server_happening import Stepped


class Uses:
    """Counts the updates that steps have used, by group of clients. A timeline tells it of its steps.

    It counts only for algorithms with a `traffic` of their own.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._counts = type(scenario.central).traffic is not Central.traffic
        self._groups = scenario.groups if self._counts else None
        self._until: list[Counter[str | None]] = [Counter()]  # by version: all that were used to make it

    def stepped(self, stepped: Stepped) -> None:
        """Counts the updates of a step."""
        if self._groups is not None:
            used = Counter(self._groups.name(member.client) for member in stepped.members)
            self._until.append(self._until[-1] + used)

    def between(self, first: int, last: int) -> dict[str | None, int]:
        """Returns how many updates of each group were used from one version to another; {} if it does not count."""
        return dict(self._until[last] - self._until[first]) if self._groups is not None else {}
