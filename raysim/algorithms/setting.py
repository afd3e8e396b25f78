"""What an algorithm may ask about the scenario that it is named in, so that algorithms need not know scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from raysim.clients import ClientGroup
    from raysim.data import Public, ServerData, Source
    from raysim.local import Local
    from raysim.models import ModelPart
    from raysim.world import World


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
