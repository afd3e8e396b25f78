"""The scenario: everything that a run is a function of."""

import hashlib
import json
from typing import Annotated, Any

from pydantic import Field

from raysim.algorithms import AnyAlgorithm, Round
from raysim.data import Data, ServerData
from raysim.data.quadratic import Quadratic
from raysim.data.server import NoServerData
from raysim.errors import Problem
from raysim.local import Local
from raysim.models import AnyModel
from raysim.models.vector import Vector
from raysim.part import Count, Named, NonNegative, Part
from raysim.world import World


class Schedule(Part):
    """How long a run lasts, and when models are evaluated."""

    rounds: Count  # where the world has no rounds (concurrency, delays in seconds): server steps
    evaluate_every: Count = 10  # rounds; the last one is evaluated always
    evaluate_clients: Count | None = None  # so many clients' own models, on their `local_test` samples, always the same


class Resources(Part):
    """What a run asks of the cluster. Numbers depend on `chunk` and `threads` only."""

    client_actors: Count = 2
    aggregators: Count = 1
    cpus_per_client: NonNegative = 1.0
    gpus_per_client: NonNegative = 0.0  # a fraction of a GPU for each client actor; 0: on the CPU
    gpus_per_aggregator: NonNegative = 0.0
    threads: Count = 1  # of CPU in each actor
    chunk: Count = 5  # clients in a task; their updates are summed in it
    wait_s: NonNegative = 0.0  # how long an autoscaling cluster may take to bring what is asked for


def _or_own_class(schema: dict[str, Any]) -> None:
    """In the JSON Schema: an algorithm may also be a class of the user's own, whose keys nobody here knows."""
    name = {"type": "string", "pattern": "^[^:]+:[^:]+$"}
    schema["anyOf"] += [name, {"type": "object", "properties": {"name": name}, "required": ["name"]}]


class Scenario(Part):
    """A scenario file. The same scenario gives the same bits on any number of workers."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    data: Annotated[Data, Named]
    server_data: ServerData = NoServerData()
    model: AnyModel
    algorithm: Annotated[AnyAlgorithm, Field(json_schema_extra=_or_own_class)]  # or a class of one's own, module:Class
    local: Local = Local()
    world: World
    run: Schedule
    resources: Resources = Resources()

    def resolved(self) -> dict[str, Any]:
        """All keys, defaults filled in, as plain data."""
        dump: dict[str, Any] = self.model_dump(mode="json", serialize_as_any=True)
        return dump

    @property
    def hash(self) -> str:
        """Of everything that the run's numbers depend on: not of its name, nor of where it runs."""
        resolved = self.resolved()
        resolved.pop("name")
        resolved["resources"] = {key: resolved["resources"][key] for key in ("chunk", "threads")}
        return hashlib.sha256(json.dumps(resolved, sort_keys=True).encode()).hexdigest()[:16]

    def problems(self) -> list[Problem]:
        """What is wrong between parts that are each right."""
        found = [Problem("data", text) for text in self.data.problems()]
        found += self._model_problems() + self._world_problems()
        if self.run.evaluate_clients is not None and self.data.local_test == 0:
            text = "needs samples of each client's own to test on, got none; set data.local_test, for example to 0.2"
            found.append(Problem("run.evaluate_clients", text))
        return found

    def _model_problems(self) -> list[Problem]:
        found = []
        if isinstance(self.data, Quadratic) != isinstance(self.model, Vector):
            text = f"the model vector goes with the data quadratic only, got {self.model.name} on {self.data.name}"
            found.append(Problem("model.name", text))
        if isinstance(self.data, Quadratic) and not isinstance(self.server_data, NoServerData):
            found.append(Problem("server_data", "the quadratic data has no samples for the server; leave it out"))
        return found

    def _world_problems(self) -> list[Problem]:
        found, dispatch, clients = [], self.world.dispatch, self.data.clients
        if isinstance(self.algorithm.trigger, Round) and not self.world.has_rounds:
            text = (
                "must be per_round or picks, for {} steps at the end of rounds, got concurrency with delays in seconds"
            )
            found.append(Problem("world.dispatch", text.format(self.algorithm.name)))
        for key in ("per_round", "concurrency"):
            wanted = getattr(dispatch, key)
            if wanted is not None and wanted > clients:
                text = f"must be at most the number of clients, {clients}, got {wanted}"
                found.append(Problem(f"world.dispatch.{key}", text))
        if dispatch.picks is not None and len(dispatch.picks) < self.run.rounds:
            text = f"must have a list for each of {self.run.rounds} rounds, got {len(dispatch.picks)}"
            found.append(Problem("world.dispatch.picks", text))
        if strangers := {client for picks in dispatch.picks or () for client in picks} - set(range(clients)):
            text = f"must be numbers of clients, 0 to {clients - 1}, got {sorted(strangers)}"
            found.append(Problem("world.dispatch.picks", text))
        return found
