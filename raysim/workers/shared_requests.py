"""The requests that the engine makes of workers in every run, with a server or without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from actors import Answer, Gang, Query, Request, Value
from raysim.data import Federation
from raysim.scenario import Scenario
from raysim.workers.replies import Described

if TYPE_CHECKING:
    from raysim.workers.loader import FederationLoader
    from raysim.workers.workbench import Workbench

CLIENT, SERVER, LOADER = "client", "aggregator", "loader"  # names of the groups of workers


class Loaded(NamedTuple):
    """What loading the data leaves."""

    federation: Value[Federation]


@dataclass(frozen=True)
class LoadRequest(Request[None, Loaded]):
    """Loads the data and divides them among clients."""

    scenario: Value[Scenario]  # with the contents of its arrays, which the workers' own scenario lacks

    name = "load"

    def leaves(self) -> Loaded:
        return Loaded(federation=Value())

    def call(self, worker: FederationLoader, gang: Gang) -> Answer[None, Loaded]:
        return Answer(None, Loaded(federation=Value(worker.load(self.scenario.content))))


@dataclass(frozen=True)
class DescribeRequest(Query[Described]):
    """Describes the data and the model to the scheduler."""

    name = "describe"

    def ask(self, worker: Workbench) -> Described:
        return worker.describe()
