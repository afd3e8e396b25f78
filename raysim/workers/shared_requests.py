"""The requests that the engine makes of workers in every run, with a server or without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from actors import Answer, Gang, Query, Request, Value
from raysim.data import Federation, federate
from raysim.parts.process import isolated
from raysim.scenario import Scenario
from raysim.scenario.dependencies import fingerprint
from raysim.workers.replies import Described, WorkCost
from results.location import is_local, location

if TYPE_CHECKING:
    from raysim.workers.workbench import Workbench

CLIENT, SERVER, LOADER = "client", "aggregator", "loader"  # names of the groups of workers


class CostHandler(Protocol):
    """What a worker must do for `CostRequest`."""

    def cost(self) -> WorkCost: ...


@dataclass(frozen=True)
class LoadRequest(Request[dict[str, str], Value[Federation]]):
    """Loads the data and divides them among clients, on the node with the files. It needs no torch. The result has
    fingerprints of the files that models read there, by path."""

    scenario: Value[Scenario]  # with the contents of its arrays, which the workers' own scenario lacks

    name = "load"

    def leaves(self) -> Value[Federation]:
        return Value()

    def call(self, worker: object, gang: Gang) -> Answer[dict[str, str], Value[Federation]]:
        given = self.scenario.content
        with isolated():  # another run may have been here before
            federation = federate(given.data, given.server_data, given.seed, given.public)
        models = (given.model, *given.models.values())
        paths = {str(path) for model in models for path in model.reads() if is_local(location(path))}
        files = {path: mark for path in sorted(paths) if (mark := fingerprint(path))}
        return Answer(files, Value(federation))


@dataclass(frozen=True)
class CostRequest(Query[WorkCost]):
    """Measures what an update costs or, without a server, what a peer's training and mixing do."""

    name = "cost"

    def ask(self, worker: CostHandler) -> WorkCost:
        return worker.cost()


@dataclass(frozen=True)
class DescribeRequest(Query[Described]):
    """Tries the model, and describes the data, the model and, with a server, the states to the scheduler."""

    name = "describe"

    def ask(self, worker: Workbench) -> Described:
        from raysim.workers.preflight import try_all

        try_all(worker)
        return worker.describe()
