"""The types in the signatures of an algorithm's functions.

Those that need torch are there for type checkers only, because the scheduler imports every algorithm, but no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from raysim.local import Local as Local
from raysim.parts.errors import Problem as Problem
from raysim.terms import Arrival as Arrival
from raysim.terms import Buffer as Buffer
from raysim.terms import Population as Population
from raysim.terms import Record as Record
from raysim.terms import Round as Round
from raysim.terms import Tensor as Tensor
from raysim.terms import TorchModule as TorchModule
from raysim.terms import Traffic as Traffic
from raysim.terms import Trip as Trip

if TYPE_CHECKING:
    from raysim.clients import ClientGroup
    from raysim.data import Public, ServerData, Source
    from raysim.local.loop import Trained as Trained
    from raysim.local.model import Model as Model
    from raysim.local.server_task import ServerTask as ServerTask
    from raysim.local.steps import Correction as Correction
    from raysim.local.task import Task as Task
    from raysim.models import ModelPart
    from raysim.world import World
else:
    Correction = Model = ServerTask = Task = Trained = Any

Arrivals: TypeAlias = Sequence[Arrival]
Problems: TypeAlias = Iterable[Problem]
Direction: TypeAlias = tuple[Tensor | None, Record]  # see `Moving.direction`
Weights: TypeAlias = "list[float] | dict[str, list[float]] | None"  # see `Central.weigh`


# --- what an algorithm may ask about its scenario, so that it need not know scenarios ---------------------------------


class Named(Protocol):
    """A part of the scenario that is chosen by its name."""

    @property
    def name(self) -> str: ...


class Length(Protocol):
    """The block `run`."""

    @property
    def rounds(self) -> int | None:
        """Number of rounds; None if something else ends the run."""

    @property
    def save_clients(self) -> bool: ...


class Setting(Protocol):
    """The blocks of a scenario that decide whether an algorithm can run in it. A `Scenario` is one."""

    @property
    def algorithm(self) -> Named: ...

    @property
    def data(self) -> Source: ...

    @property
    def server_data(self) -> ServerData: ...

    @property
    def public(self) -> Public: ...

    @property
    def model(self) -> ModelPart: ...

    @property
    def local(self) -> Local: ...

    @property
    def world(self) -> World: ...

    @property
    def clients(self) -> Sequence[ClientGroup]: ...

    @property
    def run(self) -> Length: ...
