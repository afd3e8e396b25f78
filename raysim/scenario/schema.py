"""The schema of scenarios. A scenario holds everything that the results of a run depend on."""

import hashlib
import json
import math
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator

from raysim.algorithms import ALGORITHMS, Central, Peer
from raysim.clients import ClientGroup, ClientGroups
from raysim.data import SERVER_DATA, SOURCES, Federated, OneOfSources, Public, ServerData
from raysim.data.federation.public import NO_PUBLIC
from raysim.data.federation.server import NoServerData
from raysim.data.sources.quadratic import Quadratic
from raysim.local import Local, TrainingLoss
from raysim.local.loss import TRAINING_LOSSES
from raysim.local.loss import spelled as loss_block
from raysim.metrics import METRICS, Metric
from raysim.metrics.function import spelled as metric_block
from raysim.models import MODELS, ModelPart
from raysim.models.module import spelled as model_block
from raysim.observers import OBSERVERS, TRACKERS, Observer, Tracker
from raysim.parts.part import Clients, Count, Fraction, NonNegative, OneOf, Part, Rounds, Seconds, Unit
from raysim.scenario.generation import Generation
from raysim.scenario.nodes import Nodes
from raysim.scenario.own_modules import main_objects, main_source, own_modules, receive, root_of
from raysim.scenario.until import EveryTime, Until
from raysim.terms import Population
from raysim.world import TOPOLOGIES, Topology, World
from raysim.world.horizon import Horizon
from results import html
from results.yaml import as_yaml


class Checkpointing(Part):
    """When a run makes a checkpoint, from which `raysim resume` goes on. Results do not depend on it."""

    every_s: Seconds | None = 300.0
    """Least wall seconds from one checkpoint to the next. Longer if checkpoints would otherwise take more than 2 % of
    the run's time. null: none by time."""
    every_rounds: Rounds | None = None
    """Rounds from one checkpoint to the next. null: none by rounds."""
    at_end: bool | Literal["auto"] = "auto"
    """Whether a run that finishes leaves a checkpoint, so that it can be extended by more rounds without doing again
    what it has done since the one before. auto: unless writing it would take more than 2 % of the time since then, at
    100 MB a second or as fast as the one before. A run that is interrupted leaves one whatever this says, but peers
    that do not wait for each other make their last one before the first of them mixes for the last time."""


class RunSettings(Part):
    """How long a run lasts, and when models are evaluated."""

    rounds: Rounds | None = None
    """Number of rounds. Where the world has no rounds (`concurrency` with delays in seconds), it is the number of
    server steps; for peers that do not wait for each other, a round is as many mixes as there are peers. null: `until`
    alone ends the run."""
    until: Until | None = None
    """What else ends the run, such as {virtual_time: 900}, {bytes: 1e9} or {metric: accuracy, at_least: 0.8}: whichever
    comes first. null: nothing."""
    evaluate_every: Rounds | EveryTime = 10
    """Rounds from one evaluation to the next or, such as {virtual_time: 100}, virtual time. The last model is always
    evaluated."""
    keep_best: Annotated[str, Field(pattern=r"^validation [A-Za-z]\w*$")] | None = None
    """Metric by which the best model is kept beside the last one, in best.safetensors: the word validation and its
    name, such as validation accuracy. It is read as that of `until` is. null: only the last model is kept."""
    evaluate_on: Annotated[tuple[Literal["test", "train", "validation"], ...], Field(min_length=1)] = ("test",)
    """Splits on which the global model, or the peers' models, are evaluated. train: all samples that clients train on.
    validation: what `data.validation` sets aside, which is always evaluated, and first, named or not. Progress shows
    the first split."""
    evaluate_clients: Clients | Literal["all"] | None = None
    """Number of clients, or all, whose own models are evaluated on their own test samples (`data.local_test`), and on
    those that they set aside (`data.validation`); they are the same clients each time. Progress then shows the mean
    over them, and searches tune on it. null: none. Clients that are `data.unseen` are all evaluated after the last
    round, whatever this says. With peers: the number of peers that are evaluated; null: all."""
    metrics: tuple[Annotated[Metric, OneOf(METRICS, "raysim.metrics"), BeforeValidator(metric_block)], ...] = ()
    """Metrics of all models that are evaluated, beside accuracy and loss: names, or functions of your own as
    my_module:metric. All outputs of a model on a split are kept in memory for them."""
    loss: Annotated[TrainingLoss, OneOf(TRAINING_LOSSES, "raysim.losses"), BeforeValidator(loss_block)] | None = None
    """Loss that training minimises, unless the algorithm says otherwise, and that evaluations show as `loss`: a name,
    or a function of your own as my_module:loss. null: cross-entropy of labels, half the squared error of targets."""
    compare_updates: bool = False
    """Whether the table of updates shows how long each update that a step uses is and how far it agrees with the
    others: column `update_norm`, the norm of its `delta`, and `update_cosine`, the cosine between that and the
    mean delta of the step, weighted by samples. Every update of a step is then kept until the step is done. The
    columns are null in algorithms whose clients send no delta, and 0 divided by 0 is null."""
    generate: Generation | None = None
    """Texts that the final language model goes on with. null: none."""
    save_clients: bool = False
    """Whether each client's own last model is kept, as a row of clients.safetensors. Peers' models are always kept."""
    on_divergence: Literal["stop", "go_on"] = "stop"
    """What to do when a loss, an update or a model is not finite. stop: the run ends there, with status diverged, and
    its tables stay. go_on: it goes on to the end. Either way, run.json says what was not finite first."""
    observers: tuple[Annotated[Observer, OneOf(OBSERVERS, "raysim.observers")], ...] = ()
    """Who is told how the run goes on: names, or classes of your own as my_module:MyObserver. Results do not depend on
    them."""
    log: tuple[Annotated[Tracker, OneOf(TRACKERS, "raysim.trackers")], ...] = ()
    """Trackers of experiments that the run is sent to: names, or classes of your own as my_module:MyTracker. Results do
    not depend on them."""
    checkpoint: Checkpointing = Checkpointing()
    """When the run makes a checkpoint. The newest one is kept, in the folder `checkpoint` of the run."""

    @model_validator(mode="after")
    def _comes_to_an_end(self) -> Self:
        if self.rounds is None and self.until is None:
            raise ValueError("rounds must be given, or `until`, got neither; set run.rounds, for example to 100")
        if self.rounds is None and self.until is not None and not self.until.budgets:
            text = "until.metric may never be reached, so rounds must be given, too, or a budget such as virtual_time"
            raise ValueError(f"{text}, got neither; set run.rounds")
        return self

    @property
    def horizon(self) -> Horizon:
        """When the timeline ends, as far as that is known beforehand, and when models are evaluated."""
        time, updates = self.until.horizon if self.until else (math.inf, math.inf)
        rounds, every = self.rounds or math.inf, self.evaluate_every
        by_time = every.virtual_time if isinstance(every, EveryTime) else None
        return Horizon(rounds, time, updates, every if isinstance(every, int) else None, by_time)

    @property
    def directions(self) -> dict[str, bool | None]:
        """By name in the tables, whether larger values of own metrics are better; None where that is not known."""
        return {metric.title: metric.direction for metric in self.metrics}


class Resources(Part):
    """What a run asks of the cluster.

    Results depend only on `chunk`, `shards`, `threads`, `cpu_capability`, and on whether a GPU is used.
    """

    client_actors: Count | Literal["auto"] | Annotated[str, Field(pattern="^[1-9][0-9]*-[1-9][0-9]*$")] = 2
    """Number of processes that train clients; each can host any number of clients. A range, such as 2-16: the run
    starts with the least, asks the cluster for all of them, and uses what comes. auto: as many as there is room for,
    but no more than clients are in flight. They join and leave with the cluster's nodes; results are the same."""
    aggregators: Count = 1
    """Number of processes that do the server's steps. They do each step together, and share searches on server data
    shard by shard; so there are at most `shards` of them."""
    cpus_per_client: Annotated[NonNegative, Unit("CPUs")] = 1.0
    """CPUs that Ray reserves for each client actor."""
    gpus_per_client: Annotated[Fraction, Unit("GPUs")] = 0.0
    """Share of a GPU for each client actor, such as 0.25, and of its memory. 0: it runs on the CPU."""
    gpus_per_aggregator: Annotated[Fraction, Unit("GPUs")] = 0.0
    """Share of a GPU for each aggregator, and of its memory. 0: it runs on the CPU."""
    clients_on: Nodes = Nodes()
    """Nodes that client actors may be on. {}: any node with room."""
    aggregators_on: Nodes = Nodes()
    """Nodes that aggregators may be on. {}: any node with room."""
    load_on: Nodes | None = None
    """Nodes that may load the data, which then go to each other node through Ray. null: the node of the process that
    starts the run."""
    spread: bool = False
    """Whether actors go to as many nodes as they can. Otherwise, they fill one node after another."""
    threads: Count = 1
    """Number of CPU threads in each actor. It can change the last bits of results."""
    chunk: Clients = 5
    """Largest number of clients, or of peers, in a job. The updates of its clients are summed there, so it can change
    the last bits of results. With peers, it only changes the rows of the table `tasks`."""
    shards: Count = 1
    """Number of parts into which mini-batches of a server's search are cut. Aggregators take them in turn and sum their
    gradients in order, so it can change the last bits of results."""
    wait_s: Seconds = 0.0
    """Seconds that an autoscaling cluster may take to provide what is asked for. 0: if resources are missing, the run
    fails at once. Also how long a run that has lost a node waits for another if nothing else can go on, but at least
    two minutes; then it ends, and can be resumed."""
    patience_s: Seconds | None = 600.0
    """Seconds for which a process may not answer before it is given up. A client actor or an aggregator is then
    replaced; without its scheduler, the run fails. Long jobs are no silence. null: for ever."""
    cpu_capability: Literal["default", "avx2", "avx512"] | None = None
    """Instruction set that torch is held to on every worker, for the same bits on CPUs of several generations. It can
    change the last bits of results. null: the best that each CPU has."""

    @model_validator(mode="after")
    def _room_is_countable(self) -> Self:
        if self.client_actors == "auto" and not (self.cpus_per_client or self.gpus_per_client):
            raise ValueError("client_actors: auto needs cpus_per_client or gpus_per_client above 0, to count room by")
        least, most = self.clients(1)
        if least > most and self.client_actors != "auto":
            raise ValueError(f"client_actors: a range must go from less to more, got {self.client_actors}")
        return self

    def clients(self, in_flight: int) -> tuple[int, int]:
        """Returns how many client actors a run needs at least, and how many it may have at most.

        in_flight: how many clients train at a time.
        """
        if self.client_actors == "auto":
            return 1, in_flight
        least, _, most = str(self.client_actors).partition("-")
        return int(least), int(most or least)


def computes_on(asked: dict[str, Any]) -> dict[str, Any]:
    """Returns whether a run uses GPUs, and the instruction set that it pins. Bits depend on these, but a resumed run
    may change them. asked: the block `resources` as plain data."""
    on_gpu = {key: (asked.get(key) or 0) > 0 for key in ("gpus_per_client", "gpus_per_aggregator")}
    pinned = asked.get("cpu_capability")
    return on_gpu if pinned is None else {**on_gpu, "cpu_capability": pinned}


class _Known(NamedTuple):
    """Where this process finds the user's own modules. A process that unpickles it finds them there, too."""

    roots: tuple[str, ...]
    main: str
    objects: dict[str, Any]

    def __reduce__(self) -> tuple[Any, ...]:
        return receive, tuple(self)


def _restore(known: None, schema: "type[Scenario]", values: dict[str, Any]) -> "Scenario":
    del known  # unpickling it first lets the classes of the values be found
    return schema.model_construct(**values)


class Scenario(Part):
    """A scenario file. The same scenario gives the same bits on any number of workers."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]
    """Name of the runs, which their folders' names start with and reports show."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of all draws: who holds which data, the first model, batches, delays, who is picked."""
    data: Annotated[Federated | Quadratic, OneOfSources(SOURCES, "raysim.data")]
    """Data set, and who holds which of its samples."""
    server_data: Annotated[ServerData, OneOf(SERVER_DATA, "raysim.server_data")] = NoServerData()
    """Samples that the server itself holds."""
    public: Public = NO_PUBLIC
    """Samples without labels that everybody has; some algorithms need them."""
    model: Annotated[ModelPart, OneOf(MODELS, "raysim.models"), BeforeValidator(model_block)]
    """The network that clients train."""
    algorithm: Annotated[Central | Peer, OneOf(ALGORITHMS, "raysim.algorithms")]
    """Algorithm."""
    topology: Annotated[Topology, OneOf(TOPOLOGIES, "raysim.topologies")] | None = None
    """Which peers are neighbours. Algorithms without a server need it; others must not have it."""
    local: Local = Local()
    """How clients train."""
    clients: tuple[ClientGroup, ...] = ()
    """Groups of clients, or peers, that train otherwise than `local` says, or that do not follow the algorithm.
    run.json says under `groups` who is in which, and the table `updates` has a group's place in the list as `group`."""
    world: World = World()
    """Who is picked when, how long it takes, and who is there."""
    run: RunSettings
    """How long the run lasts, and what is evaluated when."""
    resources: Resources = Resources()
    """What the run asks of the cluster."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Lets a process that is sent a scenario find modules of the user's own where this process found them."""
        roots = {str(root) for module in own_modules(self) if (root := root_of(module))}
        known = _Known(tuple(sorted(roots)), main_source(self), main_objects(self))
        return _restore, (known, type(self), dict(self))

    def _repr_html_(self) -> str:
        """What a notebook shows: the keys that were given, as YAML, and all others folded away."""
        given = self.model_dump(mode="json", exclude_unset=True, serialize_as_any=True)
        return html.text(as_yaml(given)) + html.text(as_yaml(self.resolved()), "all keys")

    def resolved(self) -> dict[str, Any]:
        """Returns all keys as plain data, with defaults filled in."""
        dump: dict[str, Any] = self.model_dump(mode="json", serialize_as_any=True)
        return dump

    @property
    def hash(self) -> str:
        """A hash of everything that the run's results depend on, and so not of its name or of its number of workers."""
        resolved = self.resolved()
        resolved.pop("name")
        for key in ("checkpoint", "generate", "log", "observers"):
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
    def needs_cost(self) -> bool:
        """Whether the timeline must be given the costs of updates."""
        return self.world.delay.needs_cost and self.world.replay is None

    @property
    def delays_follow_training(self) -> bool:
        """Whether the times of arrivals are known only once clients have trained."""
        algorithm = self.algorithm
        return self.needs_cost and isinstance(algorithm, Central) and algorithm.stops_early

    @property
    def needs_losses(self) -> bool:
        """Whether it is known only once clients have trained who is picked next."""
        return self.has_server and self.world.replay is None and self.world.dispatch.policy.needs_losses

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
    def in_flight(self) -> int:
        """Largest number of clients, or of peers, that train at a time."""
        return (self.world.dispatch.in_flight or self.data.clients) if self.has_server else self.data.clients

    def population(self, samples: NDArray[np.int64]) -> Population:
        """Returns what algorithms know of all clients. samples: the number that each client trains on, (clients,)."""
        dispatch = self.world.dispatch
        return Population(int((samples > 0).sum()), int(samples.sum()), dispatch.size, dispatch.tiers or 1)
