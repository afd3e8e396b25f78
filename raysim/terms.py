"""The types that all of raysim shares: what travels, what arrives, and when a server steps.

Nothing here imports another module of raysim, so that the simulated world, the algorithms, local training and the
engine can all use these types without importing each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

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

Inputs = Literal["images", "features", "series", "text", "named", "functions"]
"""What the inputs of samples are: what data hold, and what models take. A function is one that a client minimises."""


class Arrival(NamedTuple):
    """What is known of a client's update before anything is trained. Algorithms decide weights from it."""

    client: int
    dispatch: int  # serial number of the dispatch in the run
    round: int  # round in which it was dispatched
    version: int  # version of the model that the client received
    staleness: float  # between dispatch and arrival, in rounds or in versions of the model, as `world.staleness` says
    samples: int  # number of samples that the client trains on
    tier: int = 0  # where `world.dispatch` picks by tiers: the tier of the client, 0 for the fastest


class Moment(NamedTuple):
    """A moment of a run, at which schedules have values."""

    round: int = 0  # rounds that are over
    version: int = 0  # steps that the server has done; of a peer, how often it has mixed
    time: float = 0.0  # virtual time


class Population(NamedTuple):
    """All clients that can be picked."""

    clients: int  # number of clients; where some hold no samples, the number of one may be larger
    samples: int  # number of samples that all of them train on
    per_round: int | None = None  # the most clients that a round picks; None where clients are not picked by rounds
    tiers: int = 1  # number of tiers, where `world.dispatch` picks by tiers


class Round(NamedTuple):
    """A trigger: one server step at the end of a round, with what arrived in it. Where clients are picked by tiers,
    each tier has rounds of its own.

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
    own: Record = {}  # noqa: RUF012 - never changed; further columns of the algorithm's own


class ServerStep(NamedTuple):
    """What a server step returns, if it has more to return than the next state."""

    state: Record
    search: SearchResult | None = None
