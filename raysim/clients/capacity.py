"""How large the models of clients are: levels, each a share of the widths, or of the depth, of the server's model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raysim.parts.errors import BadInput
from raysim.parts.part import Count, Fraction, Part
from raysim.parts.rng import Stream, generator

Level = Annotated[float, Field(gt=0, le=1)]


class OwnSize(Part):
    """A model like the server's, which is narrower or less deep."""

    width: Level | None = None
    """Share of the units of each hidden layer, rounded up: the client's level, for algorithms of several widths."""
    depth: Count | None = None
    """How many parts of the model it has, the first ones of `algorithm.exits`, for algorithms of several depths."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.width is None) == (self.depth is None):
            raise ValueError("must have one of width and depth, got both or neither; give one")
        return self

    def level(self, exits: int) -> float:
        """Returns the level. exits: how many parts the server's model has."""
        return self.width if self.width is not None else min((self.depth or exits) / exits, 1.0)


class Capacity(Part):
    """Which share of the server's model each client trains, for algorithms with models of several widths or depths.

    A client of level p has the first ceil(p n) of n units of each hidden layer, or a window of so many; with depthfl
    and inclusivefl, it has the first ceil(p n) of n parts of the model, and all their units.
    """

    levels: Annotated[tuple[Level, ...], Field(min_length=1, examples=[[1.0, 0.5, 0.25]])]
    """The levels, each a share of the units of hidden layers, or of the parts of the model."""
    by: Literal["speed", "memory", "drawn", "share"] = "drawn"
    """Who has which. speed: clients are sorted by how long their first update would take with the whole model, and cut
    into equal parts, of which the fastest has the largest level. memory: the largest level that fits into
    `memory_bytes` of the client's device in the trace of `world.delay`: parameters, their gradients, the optimiser's
    state, and what a mini-batch keeps for its backward pass. drawn: one at random, all equally likely. share: drawn,
    with the shares in `share`."""
    share: tuple[Fraction, ...] = ()
    """The share of clients at each level, with `by: share`. They sum to 1."""
    redraw: Literal["never", "dispatch"] = "never"
    """Whether a client has another level at each dispatch, with `drawn` and `share`."""

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if len(set(self.levels)) < len(self.levels):
            raise ValueError(f"must have each level once in `levels`, got {list(self.levels)}; take one out")
        if (self.by == "share") != bool(self.share):
            raise ValueError("must have `share` with `by: share`, and only then; add it, or leave it out")
        if self.share and (len(self.share) != len(self.levels) or abs(sum(self.share) - 1) > 1e-6):
            got = f"{len(self.share)} that sum to {sum(self.share):g}"
            raise ValueError(f"must have a share for each of {len(self.levels)} levels that sum to 1, got {got}")
        if self.redraw == "dispatch" and self.by in ("speed", "memory"):
            raise ValueError(f"must have by: drawn or share with redraw: dispatch, got {self.by}; leave redraw out")
        return self

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of each level, where levels are drawn."""
        return self.share or (1 / len(self.levels),) * len(self.levels)


class LevelCost(NamedTuple):
    """What is known of a level before anything is trained."""

    parameters: int
    forward_flops: float  # of one sample
    memory_bytes: int  # that a client needs to train
    up_bytes: int
    down_bytes: int


class Levels:
    """The level of each client.

    capacity: the block; None: groups alone have levels. of_groups: the levels of clients whose group has one. costs: of
    each level, the largest first. times: how long the first update of each client would take with the whole model,
    (clients,), for `by: speed`. memory: the memory of each client's device in bytes, for `by: memory`.
    """

    def __init__(
        self,
        capacity: Capacity | None,
        of_groups: Mapping[int, float],
        clients: int,
        seed: int,
        costs: Mapping[float, LevelCost],
        times: NDArray[np.float64] | None = None,
        memory: list[float] | None = None,
    ) -> None:
        self._costs, self._capacity, self._of_groups = costs, capacity, of_groups
        self._redraws = capacity is not None and capacity.redraw == "dispatch"
        self._draws = Stream(seed, "levels")
        of = np.ones(clients)
        if capacity is not None and times is not None:
            parts = np.array_split(np.argsort(times, kind="stable"), len(capacity.levels))
            for level, members in zip(sorted(capacity.levels, reverse=True), parts, strict=True):
                of[members] = level
        elif capacity is not None and memory is not None:
            of[:] = [self._fitting(capacity, client, room) for client, room in enumerate(memory)]
        elif capacity is not None and capacity.by == "share":  # in exactly these shares
            shuffled = generator(seed, "levels by share").permutation(clients)
            ends = np.rint(np.cumsum(capacity.shares) * clients).astype(int)
            for level, members in zip(capacity.levels, np.split(shuffled, ends[:-1]), strict=True):
                of[members] = level
        elif capacity is not None:
            of[:] = [self._drawn(capacity, client) for client in range(clients)]
        for client, level in of_groups.items():
            of[client] = level
        self._of: list[float] = of.tolist()

    def of(self, client: int, number: int | None = None) -> float:
        """Returns the level of a client. number: its dispatch; None: where it only predicts, for which a client whose
        level is drawn anew each time has the largest one."""
        if not self._redraws or client in self._of_groups:
            return self._of[client]
        assert self._capacity is not None
        return max(self._capacity.levels) if number is None else self._drawn(self._capacity, client, number)

    def _drawn(self, capacity: Capacity, *key: int) -> float:
        return float(self._draws(*key).choice(capacity.levels, p=capacity.shares))

    def _fitting(self, capacity: Capacity, client: int, room: float) -> float:
        ordered = sorted(capacity.levels, reverse=True)
        found = next((level for level in ordered if self._costs[level].memory_bytes <= room), None)
        if found is None:
            least = self._costs[ordered[-1]].memory_bytes
            text = f"must have a level that fits the memory of client {client}, {room:,.0f} bytes, got {ordered[-1]:g}"
            raise BadInput("capacity.levels", f"{text}, which needs {least:,}; add a smaller one")
        return found

    @property
    def facts(self) -> dict[str, dict[str, Any]]:
        """What run.json says of each level: how many clients have it, and what it costs."""
        counts = {} if self._redraws else {level: self._of.count(level) for level in self._costs}
        return {
            f"{level:g}": {**({"clients": counts[level]} if counts else {}), **cost._asdict()}
            for level, cost in self._costs.items()
        }
