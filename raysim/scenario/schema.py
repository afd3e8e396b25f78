"""The schema of scenarios. A scenario holds everything that the results of a run depend on."""

import hashlib
import json
import pickle
from functools import reduce
from html import escape
from operator import getitem
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field

from raysim.algorithms import ALGORITHMS, Central, Peer
from raysim.clients import ClientGroup, ClientGroups
from raysim.clients.capacity import Capacity, OwnSize
from raysim.clients.group import architectures
from raysim.data import SERVER_DATA, SOURCES, Public, ServerData, Source, require_division
from raysim.data.federation.server import NO_PUBLIC, NoServerData
from raysim.local import Local
from raysim.models import MODELS, ModelPart
from raysim.models.module import model_block
from raysim.parts.own import give
from raysim.parts.own_code import pickled
from raysim.parts.part import OneOf, Part
from raysim.privacy.privacy import ARelease, Privacy
from raysim.scenario.run_settings import TRAVELS, Resources, RunSettings, computes_on
from raysim.terms import Population
from raysim.uplink.transforms import AnUplink
from raysim.uplink.uplink import Uplink, shadows_each
from raysim.world import TOPOLOGIES, Topology, World
from results.keys import LATER, as_yaml


def _restore(schema: "type[Scenario]", pickled: bytes, arrays: list[Any]) -> "Scenario":
    named, values = pickle.loads(pickled, buffers=arrays)
    give(named)
    return schema.model_construct(**values)


class Scenario(Part):
    """A scenario file. The same scenario gives the same bits on any number of workers."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]
    """Name of the runs, which their folders' names start with and reports show."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of all draws: who holds which data, the first model, batches, delays, who is picked."""
    data: Annotated[Source, OneOf(SOURCES), AfterValidator(require_division)]
    """Data set, and who holds which of its samples."""
    server_data: Annotated[ServerData, OneOf(SERVER_DATA)] = NoServerData()
    """Samples that the server itself holds."""
    public: Public = NO_PUBLIC
    """Samples without labels that all clients have; some algorithms need them."""
    model: Annotated[ModelPart, OneOf(MODELS), BeforeValidator(model_block)]
    """The network that clients train."""
    algorithm: Annotated[Central | Peer, OneOf(ALGORITHMS)]
    """Algorithm."""
    topology: Annotated[Topology, OneOf(TOPOLOGIES)] | None = None
    """Which peers are neighbours. Algorithms without a server need it; others must not have it."""
    local: Local = Local()
    """How clients train."""
    clients: tuple[ClientGroup, ...] = ()
    """Groups of clients, or peers, that train otherwise than `local` says, or that do not follow the algorithm.
    run.json says under `groups` who is in which, and the table `updates` has a group's place in the list as `group`."""
    capacity: Capacity | None = None
    """Which share of the server's model each client trains, for heterofl and the like. null: all of it, but for groups
    with their own `model`."""
    uplink: tuple[AnUplink, ...] = ()
    """What happens to the update of a client on its way to the server, or to a peer's message, in this order: clipping,
    sparsifying, fewer bits. Bytes in tables, budgets and computed delays are those that then travel."""
    downlink: tuple[AnUplink, ...] = ()
    """What happens to the server's message on its way to clients, in this order: half, quantise or qsgd, or any codec
    with `memory: shadow`. Clients train from what they decode; what is evaluated and saved is the server's model."""
    release: ARelease = None
    """Noise that the server adds to the sum of a step, before its rule moves the model. null: none."""
    privacy: Privacy | None = None
    """Which guarantee the noise gives to clients, and when the run ends because of it. null: none is
    accounted for."""
    world: World = World()
    """Who is picked when, how long it takes, and who is there."""
    run: RunSettings
    """How long the run lasts, and what is evaluated when."""
    resources: Resources = Resources()
    """What the run asks of the cluster."""

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Sends the user's own classes and functions with a scenario, so that other processes need not find them."""
        arrays: list[pickle.PickleBuffer] = []
        return _restore, (type(self), pickled(self, arrays.append if protocol >= 5 else None), arrays)

    def _repr_html_(self) -> str:
        """What a notebook shows: the keys that were given, as YAML."""
        return f"<pre>{escape(as_yaml(self.model_dump(mode='json', exclude_unset=True, serialize_as_any=True)))}</pre>"

    def resolved(self) -> dict[str, Any]:
        """Returns all keys as plain data, with defaults filled in."""
        dump: dict[str, Any] = self.model_dump(mode="json", serialize_as_any=True)
        return dump

    @property
    def hash(self) -> str:
        """A hash of everything that the run's results depend on, and so not of its name or of its number of workers."""
        resolved = self.resolved()
        resolved.pop("name")
        for path, default in LATER.items():
            *blocks, key = path.split(".")
            block = reduce(getitem, blocks, resolved)
            if block and block.get(key) == default:
                block.pop(key, None)
        for group in resolved["clients"]:
            if group["model"] is None:
                group.pop("model")
        for key in ("checkpoint", "log", "observers"):
            resolved["run"].pop(key)
        asked = resolved.pop("resources")
        deciding = {key: asked[key] for key in ("chunk", "shards", "threads")}
        resolved["resources"] = {**deciding, **computes_on(asked)}
        return hashlib.sha256(json.dumps(resolved, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def evaluated_splits(self) -> tuple[str, ...]:
        """The splits on which models are evaluated. Progress shows the first one, and searches tune on it.

        That is validation if there is such a split; the others are those of `run.evaluate_on`.
        """
        named: tuple[str, ...] = self.run.evaluate_on
        return ("validation", *(split for split in named if split != "validation")) if self.data.validation else named

    @property
    def sent(self) -> tuple[Uplink, ...]:
        """The transforms of what clients send: `uplink`, and those that `release` needs after it."""
        return (*self.uplink, *(self.release.transforms if self.release is not None else ()))

    @property
    def sends_each(self) -> bool:
        """Whether `downlink` makes a message for each client, and not one for all of them."""
        return bool(self.downlink) and (self.divides or bool(self.models) or any(map(shadows_each, self.downlink)))

    @property
    def foresees_bytes(self) -> bool:
        """Whether a dry run knows what travels: it measures a model only if delays, models of several sizes or the
        end of the run depend on that, because it otherwise needs no torch."""
        by_bytes = self.run.until is not None and not self.run.until.budgets.keys().isdisjoint(TRAVELS)
        return by_bytes or self.world.delay.needs_cost or bool(self.levels or self.models)

    @property
    def delays_follow_training(self) -> bool:
        """Whether the times of arrivals are known only once clients have trained."""
        algorithm = self.algorithm
        return self.world.delay.needs_cost and isinstance(algorithm, Central) and algorithm.stops_early

    @property
    def needs_losses(self) -> bool:
        """Whether it is known only once clients have trained who is picked next."""
        return self.has_server and self.world.dispatch.policy.needs_losses

    @property
    def follows_training(self) -> bool:
        """Whether clients train at their dispatch, because the timeline depends on what comes of it."""
        return self.delays_follow_training or self.needs_losses

    @property
    def server_sums(self) -> bool:
        """Whether the server sums updates, instead of the workers that train clients: it compares each with the
        others, or their weights were not known when they were trained."""
        return self.run.compare_updates or self.follows_training

    @property
    def has_server(self) -> bool:
        """Whether the algorithm has a server. If not, it is one of peers."""
        return isinstance(self.algorithm, Central)

    @property
    def graph_changes(self) -> bool:
        """Whether the graph of peers may change: it is redrawn, links come and go, or peers do."""
        world, topology = self.world, self.topology
        redrawn = topology is not None and topology.epoch(2**31, 2.0**31) > 0
        return redrawn or world.links.name != "always" or world.availability.name != "always"

    @property
    def central(self) -> Central:
        """The algorithm, typed as one with a server. Use it only if it has one."""
        assert isinstance(self.algorithm, Central)
        return self.algorithm

    @property
    def peer(self) -> Peer:
        """The algorithm, typed as one without a server. Use it only if it has none."""
        assert isinstance(self.algorithm, Peer)
        return self.algorithm

    @property
    def groups(self) -> ClientGroups:
        """The groups of clients, drawn anew at each call."""
        return ClientGroups(self.clients, self.data.clients, self.seed, self.local)

    @property
    def exits(self) -> int:
        """Into how many parts the algorithm divides the model; 1 where levels are widths."""
        return getattr(self.algorithm, "exits", 1)

    @property
    def divides(self) -> bool:
        """Whether clients may receive a part of the server's model only."""
        return bool(self.levels) or self.exits > 1

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels that clients may have, the largest first; () where all train the server's model."""
        of_groups = [group.model.level(self.exits) for group in self.clients if isinstance(group.model, OwnSize)]
        found = {*(self.capacity.levels if self.capacity else ()), *of_groups}
        others = {1.0} if of_groups and not self.capacity else set()
        return tuple(sorted(found | others, reverse=True))

    @property
    def models(self) -> dict[str, ModelPart]:
        """The models of groups that are of other architectures than the server's, each by the name of the first group
        that has it; {} where there are none."""
        return architectures(self.clients, self.model)

    def place_of(self, group: str) -> int:
        """Returns the place of a group in `clients`."""
        return [one.name for one in self.clients].index(group)

    @property
    def apart(self) -> bool:
        """Whether the server has a model of each of several architectures."""
        return bool(self.models) and self.has_server and self.central.steps_apart

    def population(self, samples: NDArray[np.int64]) -> Population:
        """Returns what algorithms know of all clients. samples: the number that each client trains on, (clients,)."""
        dispatch, clients = self.world.dispatch, int((samples > 0).sum())
        expected = None if dispatch.probability is None else dispatch.probability * clients
        return Population(
            clients, int(samples.sum()), dispatch.size, dispatch.tiers or 1, expected, self.levels or (1.0,)
        )
