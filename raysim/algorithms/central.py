"""The base of all algorithms, and that of those with a server: one frozen part that holds the server's side and the
clients' side.

Everything that travels or is kept (server state, message, update, client state) is a `Record` of named tensors. Methods
get Records and return new ones, and never change them in place. So raysim can store, send, measure and sum them without
any code in the algorithm.

A file of algorithms must not import torch at its top: the scheduler reads triggers and weights and needs no tensors.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from raysim.algorithms.signatures import Arrivals, Local, Model, Problems, ServerTask, Setting, Task, Tensor, Weights
from raysim.parts.errors import Problem
from raysim.schedules import Schedulable
from raysim.terms import Depth, Population, Record, ServerStep, TorchModule, Traffic, Trigger, Trip


class Algorithm(Schedulable):
    """The base of `Central` and `Peer`, one of which an algorithm derives from.

    A custom class runs as `algorithm: my_module:MyClass`. One that comes with raysim is imported in
    `raysim/algorithms/__init__.py`, in one line, and has no other place to be registered.
    """

    keeps_personal: ClassVar[bool] = False
    """Whether clients or peers keep the personal part of the model, and only the shared part travels. `model.norm` can
    then be local."""

    name: str

    def embeds(self, scenario: Setting) -> bool | str:
        """Whether it calls `task.embed`; or, instead of true, the name of the sub-module that it embeds with. A run
        then checks at its start that the model can embed."""
        return False

    def problems(self, scenario: Setting) -> Problems:
        """Yields what the algorithm cannot do with the rest of the scenario. Paths start at the scenario."""
        return ()

    def samples_seen(self, local: Local, samples: int) -> int:
        """Returns for how many samples a client computes gradients in one `update`, or a peer in one `local`. Computed
        delays follow that.

        samples: the number of samples that the client or peer holds. A sample counts once for each time that it is
        used, as if no training stopped early. Gradients of a part of the model count like those of the whole.
        Predictions and embeddings do not count here, nor does what `mix` does: raysim measures them.
        """
        return local.total_samples(samples)

    def traffic(self, trip: Trip) -> Traffic:
        """Returns how many bytes an update of a client, or a peer's message, and the message to it take on a network.

        It is needed where tensors hold more than what travels, such as zeros. Tables, budgets and computed delays all
        count what it returns, and so it follows from sizes alone, before anything is trained.
        """
        return trip.tensors


class Central(Algorithm):
    """An algorithm with a server. Its methods with a body do what most algorithms need. A subclass adds its `name`."""

    sends: ClassVar[Literal["difference", "model"]] = "difference"
    """Whether clients send models. Transforms of `uplink` then take their differences from the model that came."""
    merges_adapters: ClassVar[bool] = False
    """Whether the server merges adapters into the weights under them. `model.lora.merge` must then be true."""

    takes_levels: ClassVar[bool] = False
    """Whether clients may train narrower models than the server's, as `capacity` says. `message` then reaches a client
    as the slice of its level, and vectors that are shaped like that slice reach `step` with zeros around them;
    `task.held` says what of them is held."""

    mixes_models: ClassVar[bool] = False
    """Whether groups of clients may have models of other architectures than the server's. Each client then starts with
    the first values of a model like its own, and `client` is called with these. All clients send entries of the same
    shapes, and the message holds no "w", unless `steps_apart` is true."""

    steps_apart: ClassVar[bool] = False
    """Whether the server then has a model of each architecture. `init`, `message`, `weigh` and `step` are called for
    each of them by itself, with the updates of the clients that have it; `updates` may be {}."""

    pools_statistics: ClassVar[bool] = False
    """Whether clients keep no running statistics of BatchNorm, and send none. Those with which a model is evaluated and
    saved are then collected over the samples of all clients, in a separate pass."""

    own_model: ClassVar[dict[str, str]] = {}
    """What a client's state holds of the model that the client predicts with: the entry for each argument of
    `Model.replace`, such as {"personal": "head"}. An algorithm with another way to make that model defines `personal`,
    which is called for each client in turn and so takes longer."""

    @property
    @abstractmethod
    def trigger(self) -> Trigger:
        """When the server steps."""

    @property
    def stops_early(self) -> bool:
        """Whether clients may stop training early, for example at a tolerance.

        The number of their steps is then known only once they have trained, and computed delays follow what was done.
        """
        return False

    @property
    def increments(self) -> tuple[str, ...]:
        """The entries of updates that are changes of what the server sums up for good, so that a transform of `uplink`
        must not lose a part of them."""
        return ()

    @property
    def caches_clients(self) -> bool:
        """Whether clients' states stand for what the paper's server caches. They then count as memory of the server."""
        return False

    @property
    def needs_every_update(self) -> bool:
        """Whether `step` gets a stack of all updates even though `weigh` returns weights, and applies the weights
        itself."""
        return False

    def init(self, model: Model, population: Population) -> Record:
        """Returns the server's state before the first round. Its "w" is all parameters, or the shared part only."""
        return {"w": model.w}

    def message(self, state: Record) -> Record:
        """Returns what a picked client receives, with the same entries in every version. Its size is what the client
        downloads, with BatchNorm's buffers if "w" is in it. That "w" is also the model that is evaluated and saved.

        Without "w", no model is sent, and with {} nothing at all. The client's task then still holds the model, so that
        it can be evaluated, but what the client does must not depend on it.
        """
        return {"w": state["w"]}

    @abstractmethod
    def weigh(self, arrivals: Arrivals, population: Population) -> Weights:
        """Returns the weight of each update in the sums that `step` gets, or None if `step` needs every update.

        Where it needs several sums of the updates, they have names, and `step` gets the entries of each: with {"mean":
        weights, "last": others}, "mean.delta" and "last.delta" of updates that hold "delta".

        They need not sum to 1: with weights of 1, `step` gets plain sums, also of entries that are single numbers. They
        do not apply to buffers, such as BatchNorm's statistics: these are averaged by samples.
        """

    @abstractmethod
    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Record | ServerStep:
        """Returns the server's next state, or a `ServerStep` that holds it with what the tables show of a search, such
        as `ServerStep({"w": w}, search=SearchResult(...))`.

        Entries of the state that do not change may be left out. updates: for each entry that clients send, the weighted
        sum over clients or, if `weigh` returns None, a stack of all of them with a leading axis in the order of
        `arrivals`; {} if none arrived. task: trains and predicts on the server's own samples. If there are several
        aggregators, all of them call this method and must return the same; they share the work of `task.reduce`.
        """

    def prepare(self, module: TorchModule, level: float) -> None:
        """Changes a new module of a level, in place, before it is used; level 1 is that of the server's model."""

    def depth(self, level: float | None) -> Depth | None:
        """Returns how deep the model of clients of a level is, or the server's (None), where levels are depths. None:
        levels are widths, and the server's model is as the scenario says."""
        return None

    def first_unit(self, version: int) -> int:
        """Returns the unit with which slices of a version of the model begin, in each layer: they wrap around at its
        end."""
        return 0

    def at_level(self, message: Record, place: int) -> Record:
        """Returns a message, before a level's slice is taken of it, whose `buffers` are those of a level. place: the
        level's place in `population.levels`. It is asked where clients have levels."""
        return message

    def trains(self, level: float, levels: Sequence[float]) -> list[float]:
        """Returns the levels of the networks that a client of a level trains, equally often, for counting operations.
        levels: all that there are."""
        return [level]

    def client(self, model: Model) -> Record:
        """Returns a client's state before it first takes part; {} if clients keep none. Shapes and types are fixed.

        By default, it is what `own_model` names of the first model, as `state_of` returns it.
        """
        return self.state_of(model)

    def state_of(self, model: Model) -> Record:
        """Returns what `own_model` names of a model, for a client's state."""
        return {entry: getattr(model, part) for part, entry in self.own_model.items()}

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        """Trains a client. Returns its update and its next state, which is kept only if a step uses the update."""
        trained = task.train(task.received)
        return trained.send(delta=trained.w - message["w"]), state

    def personal(self, task: Task, message: Record, state: Record) -> Model | Callable[[Tensor], Tensor]:
        """Returns what a client predicts with: a model, or a function from inputs to logits or log-probabilities.

        By default, it is what `own` returns.
        """
        return self.own(task, state)

    def own(self, task: Task, state: Record) -> Model:
        """Returns the model that a client received, with what `own_model` names of the client's state."""
        own = {part: state[entry] for part, entry in self.own_model.items()}
        return task.received.replace(**own) if own else task.received

    def adapt(self, task: Task, message: Record, state: Record) -> Record:
        """Returns the state to which a client that never took part adapts after the last round.

        message: the last message. state: what `client` returned. An algorithm that has nothing to fit returns it as is.
        """
        return state


def needs_personal(scenario: Setting) -> Problems:
    """Yields a problem unless some parameters of the model stay with each client."""
    if not scenario.model.personal and scenario.model.norm != "local":
        name = scenario.algorithm.name
        text = f"must name the personal parameters, because {name} has some, got none; for example [head]"
        yield Problem("model.personal", text)


def needs_labels(scenario: Setting) -> Problems:
    """Yields a problem if the data have no labels, or training mixes them."""
    name = scenario.algorithm.name
    if scenario.data.classes == 0:
        yield Problem("algorithm.name", f"{name} needs labels, and {scenario.data.name} has none; take other data")
    if any(augmentation.name == "mixup" for augmentation in scenario.local.augment):
        yield Problem("local.augment", f"must not have mixup, because {name} needs each label; leave it out")
