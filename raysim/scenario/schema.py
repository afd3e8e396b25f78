"""The scenario: everything that a run is a function of."""

import hashlib
import json
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raysim.algorithms import ALGORITHMS, Central, Peer
from raysim.data import DATA_SETS, SERVER_DATA, Public, ServerData
from raysim.data.images import Images
from raysim.data.linear_regression import LinearRegression
from raysim.data.pool import PooledData
from raysim.data.public import NO_PUBLIC
from raysim.data.quadratic import Quadratic
from raysim.data.server import NoServerData, OutOfDomain
from raysim.data.shakespeare import Shakespeare
from raysim.errors import Problem
from raysim.local import Local
from raysim.models import MLP, MODELS, Linear, ModelPart
from raysim.models.text_model import TextModel
from raysim.models.vector import Vector
from raysim.part import Count, NonNegative, OneOf, Part
from raysim.scenario.peer_checks import peers_problems
from raysim.scenario.server_checks import world_problems
from raysim.terms import Population
from raysim.world import TOPOLOGIES, Topology, World


class Schedule(Part):
    """How long a run lasts, and when models are evaluated."""

    rounds: Count
    """Where the world has no rounds (concurrency, delays in seconds): server steps. Of peers that do not wait: as many
    mixes as there are peers."""
    evaluate_every: Count = 10
    """Rounds from one evaluation to the next; the last model is evaluated always."""
    evaluate_on: Annotated[tuple[Literal["test", "train"], ...], Field(min_length=1)] = ("test",)
    """What the global model is evaluated on. train: all that clients train on."""
    evaluate_clients: Count | Literal["all"] | None = None
    """The own models of so many clients, or all, are evaluated on their `local_test` samples; always the same clients.
    Those that are `data.unseen` adapt to the last model, and are then evaluated, all of them, whatever this says.

    Of peers: so many, instead of all; on what `evaluate_on` says."""
    save_clients: bool = False
    """Keep each client's own last model, a row each in clients.safetensors. Those of peers are kept always."""


class Resources(Part):
    """What a run asks of the cluster. Numbers depend on `chunk`, `shards` and `threads` only."""

    client_actors: Count = 2
    """Processes that train clients, any number of which each can take on."""
    aggregators: Count = 1
    """Processes that do server steps, together: they share searches on server data, shard by shard."""
    cpus_per_client: NonNegative = 1.0
    """CPUs that Ray reserves for each client actor."""
    gpus_per_client: NonNegative = 0.0
    """A fraction of a GPU for each client actor; 0: on the CPU."""
    gpus_per_aggregator: NonNegative = 0.0
    """The same for each aggregator."""
    threads: Count = 1
    """Of CPU in each actor."""
    chunk: Count = 5
    """Clients, or peers, in a task; updates of clients are summed in it."""
    shards: Count = 1
    """Parts of a mini-batch in a server's search; aggregators take them in turn, and sum their gradients in order."""
    wait_s: NonNegative = 0.0
    """How long an autoscaling cluster may take to bring what is asked for, in seconds."""


def _or_own_class(schema: dict[str, Any]) -> None:
    """In the JSON Schema: an algorithm may also be a class of the user's own, whose keys nobody here knows."""
    name = {"type": "string", "pattern": "^[^:]+:[^:]+$"}
    schema["anyOf"] += [name, {"type": "object", "properties": {"name": name}, "required": ["name"]}]


class Scenario(Part):
    """A scenario file. The same scenario gives the same bits on any number of workers."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """Of runs: in their folders' names and in reports."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Of all draws: who holds which data, the first model, batches, delays, picks."""
    data: Annotated[PooledData | Quadratic, OneOf(DATA_SETS)]
    """The data set, how many clients share it, and who holds which of it."""
    server_data: Annotated[ServerData, OneOf(SERVER_DATA)] = NoServerData()
    """Samples that the server has itself; algorithms that train or search at the server need them."""
    public: Public = NO_PUBLIC
    """Samples that all have without their labels; some algorithms need them."""
    model: Annotated[ModelPart, OneOf(MODELS)]
    """The model that is trained."""
    algorithm: Annotated[Central | Peer, OneOf(ALGORITHMS), Field(json_schema_extra=_or_own_class)]
    """By its name, or as module:Class for a class of your own."""
    topology: Annotated[Topology, OneOf(TOPOLOGIES)] | None = None
    """Which peers are neighbours; for algorithms without a server, which need it."""
    local: Local = Local()
    world: World = World()
    run: Schedule
    resources: Resources = Resources()

    def resolved(self) -> dict[str, Any]:
        """All keys, defaults filled in, as plain data."""
        dump: dict[str, Any] = self.model_dump(mode="json", serialize_as_any=True)
        return dump

    @property
    def hash(self) -> str:
        """Of everything that the run's numbers depend on: not of its name, nor of how many workers it has."""
        resolved = self.resolved()
        resolved.pop("name")
        asked = resolved.pop("resources")
        on_gpu = {key: asked[key] > 0 for key in ("gpus_per_client", "gpus_per_aggregator")}
        deciding = {key: asked[key] for key in ("chunk", "shards", "threads")}
        resolved["resources"] = {**deciding, **on_gpu}
        return hashlib.sha256(json.dumps(resolved, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def follows_work(self) -> bool:
        """Whether arrivals are known only once clients have trained."""
        algorithm = self.algorithm
        return self.world.delay.needs_work and isinstance(algorithm, Central) and algorithm.stops_early

    @property
    def central(self) -> Central:
        """The algorithm, of a scenario whose algorithm has a server."""
        assert isinstance(self.algorithm, Central)
        return self.algorithm

    @property
    def peer(self) -> Peer:
        """The algorithm, of a scenario whose algorithm has no server."""
        assert isinstance(self.algorithm, Peer)
        return self.algorithm

    def population(self, samples: NDArray[np.int64]) -> Population:
        """samples: that each client trains on, (clients,)."""
        return Population(int((samples > 0).sum()), int(samples.sum()), self.world.dispatch.size)

    def problems(self) -> list[Problem]:
        """What is wrong between parts that are each right."""
        found = [Problem("data", text) for text in self.data.problems()]
        found += self._model_problems()
        found += self._server_data_problems()
        found += self.algorithm.problems(self)
        found += peers_problems(self) if isinstance(self.algorithm, Peer) else self._server_problems(self.algorithm)
        return found

    def _server_problems(self, algorithm: Central) -> list[Problem]:
        found = list(world_problems(self.world, algorithm, self.data.participants, self.run.rounds))
        if self.topology is not None:
            text = f"goes with algorithms without a server, got it with {algorithm.name}; leave it out"
            found.append(Problem("topology", text))
        if self.resources.aggregators > self.resources.shards:
            text = (
                f"must be at most resources.shards, {self.resources.shards}, for they share a step shard by shard, got "
                f"{self.resources.aggregators}; raise shards, which changes bits, or lower it"
            )
            found.append(Problem("resources.aggregators", text))
        if self.run.evaluate_clients is not None and self.data.local_test == 0:
            text = "needs samples of each client's own to test on, got none; set data.local_test, for example to 0.2"
            found.append(Problem("run.evaluate_clients", text))
        if self.data.unseen and self.data.local_test == 0:
            text = "are evaluated on samples of their own, got none; set data.local_test, for example to 0.2"
            found.append(Problem("data.unseen", f"clients that take no part {text}"))
        return found

    def _model_problems(self) -> list[Problem]:
        found = []
        if isinstance(self.data, Quadratic) != isinstance(self.model, Vector):
            text = f"the model vector goes with the data quadratic only, got {self.model.name} on {self.data.name}"
            found.append(Problem("model.name", text))
        elif isinstance(self.data, LinearRegression) and not isinstance(self.model, Linear | MLP):
            text = f"the data linear_regression goes with the models linear and mlp only, got {self.model.name}"
            found.append(Problem("model.name", text))
        elif isinstance(self.data, Shakespeare) != isinstance(self.model, TextModel):
            text = f"models of text go with the data shakespeare only, got {self.model.name} on {self.data.name}"
            found.append(Problem("model.name", text))
        if isinstance(self.data, Quadratic) and self.public.samples:
            text = (
                "the quadratic data has no samples for the public, for a model's output there is its loss; leave it out"
            )
            found.append(Problem("public", text))
        if self.data.classes == 0 and self.public.alpha is not None:
            text = f"needs labels to skew the mix of, and {self.data.name} has none; leave it out"
            found.append(Problem("public.alpha", text))
        return found

    def _server_data_problems(self) -> list[Problem]:
        if isinstance(self.server_data, NoServerData):
            return []
        if isinstance(self.data, Quadratic | LinearRegression):
            text = f"the {self.data.name} data has no samples for the server; leave it out"
            return [Problem("server_data", text)]
        if not isinstance(self.server_data, OutOfDomain):
            return []
        found = [Problem("server_data.data", text) for text in self.server_data.data.problems()]
        if not isinstance(self.data, Images):
            text = f"out_of_domain has images, which clients must have too, got {self.data.name}; take in_domain"
            found.append(Problem("server_data", text))
        return found
