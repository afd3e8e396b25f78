"""The types that all of raysim shares: what travels, what is kept, what arrives, and when a server steps.

Nothing here imports another module of raysim, so that the simulated world, the algorithms, local training and the
engine can all use these types without importing each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor as Tensor
    from torch import nn

    TorchModule: TypeAlias = nn.Module
else:
    Tensor = TorchModule = Any  # because the scheduler loads no torch

Record: TypeAlias = "dict[str, Tensor]"
"""Named tensors: all that travels or is kept, such as a server's state, a message, an update or a client's state.
Functions take records and return new ones, and never change tensors in place."""

Wire: TypeAlias = "dict[str, np.ndarray]"
"""A record as it travels: named arrays instead of tensors."""

Shapes: TypeAlias = "tuple[tuple[int, ...], ...]"
"""The shape of each layer of a vector, in the vector's order."""

Vectors: TypeAlias = "Mapping[tuple[str, ...], Shapes]"
"""The vectors that transforms take of a record, by the names of the entries that are joined to one; () stands for those
that are shaped like the model."""

Entry = TypeVar("Entry")  # a tensor or, as it travels between processes, an array
Other = TypeVar("Other")

ModelKey: TypeAlias = "float | str"
"""Which model a client trains: the width, as a share of the server's or, where groups have other architectures, the
name of the first group with that model."""


def suffixed(name: str, key: ModelKey) -> str:
    """Returns the name of an entry of a model's own, where one record has those of several architectures."""
    return f"{name} of {key}" if isinstance(key, str) else name


Inputs = Literal["images", "features", "series", "volumes", "text", "named", "functions"]
"""What the inputs of samples are: what data hold, and what models take. A function is one that a client minimises."""


class ClientState(NamedTuple, Generic[Entry]):
    """What a client or peer keeps from one training to the next, in one compartment for each of those that keep it."""

    algorithm: dict[str, Entry] = {}  # noqa: RUF012 - never changed; so below
    """What the algorithm keeps: what its `client` returned or, of a peer, its state or draft."""
    optimizer: dict[str, Entry] = {}  # noqa: RUF012
    """What an optimiser with `keep` needs to continue; {} if it starts afresh."""
    uplink: dict[int, dict[str, Entry]] = {}  # noqa: RUF012
    """What transforms of `uplink` keep, by their place in the list; without those that keep nothing."""
    message: dict[str, Entry] = {}  # noqa: RUF012
    """Of a peer that has trained: its message as it was before transforms of `uplink`; {} if they change nothing."""
    downlink: dict[int, dict[str, Entry]] = {}  # noqa: RUF012
    """What transforms of `downlink` keep where each client has its own copy, by their place in the list."""

    def map(self, change: Callable[[dict[str, Entry]], dict[str, Other]]) -> ClientState[Other]:
        """Returns the state with each of its records changed by a function."""
        up, down = ({place: change(one) for place, one in kept.items()} for kept in (self.uplink, self.downlink))
        return ClientState(change(self.algorithm), change(self.optimizer), up, change(self.message), down)

    def flat(self) -> dict[str, Entry]:
        """Returns all entries in one dictionary, as a file holds them: named by compartment, a slash and their name."""
        named = {"algorithm": self.algorithm, "optimizer": self.optimizer, "message": self.message}
        for list_, kept in (("uplink", self.uplink), ("downlink", self.downlink)):
            named |= {f"{list_}/{place}": record for place, record in kept.items()}
        return {f"{part}/{name}": entry for part, record in named.items() for name, entry in record.items()}

    @classmethod
    def of_flat(cls, entries: Mapping[str, Entry]) -> ClientState[Entry]:
        """Returns the state of which `flat` made a dictionary."""
        parts: dict[str, dict[str, Entry]] = {"algorithm": {}, "optimizer": {}, "message": {}}
        lists: dict[str, dict[int, dict[str, Entry]]] = {"uplink": {}, "downlink": {}}
        for path, entry in entries.items():
            part, _, name = path.partition("/")
            if part in lists:
                place, _, name = name.partition("/")
                lists[part].setdefault(int(place), {})[name] = entry
            else:
                parts[part][name] = entry
        return cls(parts["algorithm"], parts["optimizer"], lists["uplink"], parts["message"], lists["downlink"])


class ServerState(NamedTuple):
    """What the server keeps from one step to the next, in one compartment for each of those that keep it."""

    algorithm: Record
    """What the algorithm keeps: what its `step` returned."""
    release: Record = {}  # noqa: RUF012 - never changed; so below
    """What the noise of `release` keeps."""
    downlink: dict[int, Record] = {}  # noqa: RUF012
    """What transforms of `downlink` keep, by their place in the list, where all clients have one copy."""

    def flat(self) -> Record:
        """Returns all entries in one record: those of the algorithm by their names, and others after `release/`, or
        `downlink/` and a place."""
        named = {f"release/{name}": entry for name, entry in self.release.items()}
        for place, kept in self.downlink.items():
            named |= {f"downlink/{place}/{name}": entry for name, entry in kept.items()}
        return {**self.algorithm, **named}

    @classmethod
    def of_flat(cls, entries: Record) -> ServerState:
        """Returns the state of which `flat` made a record."""
        found = cls({}, {}, {})
        for path, entry in entries.items():
            part, _, name = path.partition("/")
            if part == "downlink":
                place, _, name = name.partition("/")
                found.downlink.setdefault(int(place), {})[name] = entry
            elif part == "release":
                found.release[name] = entry
            else:
                found.algorithm[path] = entry
        return found


class Traffic(NamedTuple):
    """Bytes on a simulated network, wherever they count: in tables, budgets and computed delays."""

    up: int  # of what a client sends, or a peer to each neighbour
    down: int  # of what a client receives, or a peer from each neighbour


class Adapter(NamedTuple):
    """The sizes of an adapter of `model.lora`, which adds B A to a weight."""

    rank: int
    numbers: int  # of A and B together, for each rank
    base: int | None  # of the weight, where adapters can be merged into it; else None


class ModelSizes(NamedTuple):
    """The sizes of a model, in numbers, without tensors. The padding of flat vectors does not count."""

    layers: tuple[int, ...]  # of each parameter tensor, the shared ones first
    shared: int  # how many of these are shared
    buffers: int  # of those that travel, such as BatchNorm's statistics
    adapters: tuple[Adapter, ...] = ()

    @property
    def parameters(self) -> int:
        """The number of all parameters."""
        return sum(self.layers)


class Missed(NamedTuple):
    """What a client has missed since the version that it received last, of those whose update was used."""

    uses: Mapping[str | None, int] = {}
    """How many updates of each group steps have used since then; from version 0 on if there was none. It is {} unless
    the algorithm has a `traffic` of its own."""
    versions: int | None = None  # how many versions were made since then; None if there was none


class Trip(NamedTuple):
    """What is known before anything is trained of a message to a client and of its update, or of a peer's message."""

    sizes: ModelSizes  # of the model
    tensors: Traffic  # bytes of the tensors of the update and of the message
    group: str | None  # the client's group in `clients`; None if it is in none
    missed: Missed = Missed()  # by the client


class Arrival(NamedTuple):
    """What is known of a client's update before anything is trained. Algorithms decide weights from it."""

    client: int
    dispatch: int  # serial number of the dispatch in the run
    round: int  # round in which it was dispatched
    version: int  # version of the model that the client received
    staleness: float  # between dispatch and arrival, in rounds or in versions of the model, as `world.staleness` says
    samples: int  # number of samples that the client trains on
    tier: int = 0  # where `world.dispatch` picks by tiers: the tier of the client, 0 for the fastest
    level: float = 1.0  # the width of the client's model, as a share of the server's
    architecture: str | None = None  # first group with the client's model, if its architecture is not the server's


class Moment(NamedTuple):
    """A moment of a run, at which schedules have values."""

    round: int = 0  # rounds that are over
    version: int = 0  # steps that the server has done; of a peer, how often it has mixed
    time: float = 0.0  # virtual time


Weight: TypeAlias = "float | Mapping[str, float]"
"""The weight of an update in the sum that a server step gets, or in each of several sums, by their names."""


class Depth(NamedTuple):
    """How deep a model is that is divided into parts, each with an exit at its end."""

    parts: int  # of the server's model
    first: int  # how many of them it has: the first ones
    every: bool = True  # whether it has the exits of all of these; false: that of the last only
    mean: bool = True  # whether it predicts with the mean of its exits' logits; false: with those of the last


class Population(NamedTuple):
    """All clients that can be picked."""

    clients: int  # number of clients; where some hold no samples, the number of one may be larger
    samples: int  # number of samples that all of them train on
    per_round: int | None = None  # the most clients that a round picks; None where clients are not picked by rounds
    tiers: int = 1  # number of tiers, where `world.dispatch` picks by tiers
    expected: float | None = None  # clients that a round picks in the mean; None without `world.dispatch.probability`
    levels: tuple[float, ...] = (1.0,)  # that clients may have, the largest first


class Round(NamedTuple):
    """A trigger: one server step at the end of a round, with what arrived in it. Where clients are picked by tiers,
    each tier has its own rounds.

    late: whether updates that were dispatched in an earlier round are discarded, or kept and used. empty: whether the
    server steps even if no update arrived.
    """

    late: Literal["discard", "keep"] = "discard"
    empty: bool = False


class Buffer(NamedTuple):
    """A trigger: one server step as soon as `size` updates have arrived. Buffer(1) steps at every arrival."""

    size: int


Trigger: TypeAlias = Round | Buffer


class SearchResult(NamedTuple):
    """What a server's search for coefficients found, for the table `coefficients`. Each is (m,), for m anchors."""

    anchor: Tensor  # the anchor's place in the atlas
    client: Tensor  # the client whose update the anchor is
    arrived: Tensor  # the server step at which that update arrived
    coefficient: Tensor  # what the search found
    fallback: Tensor  # where the search started
    norm: Tensor  # the norm of the update
    own: Record = {}  # noqa: RUF012 - never changed; further custom columns of the algorithm


class ServerStep(NamedTuple):
    """What a server step returns, if it has more to return than the next state."""

    state: Record
    search: SearchResult | None = None
