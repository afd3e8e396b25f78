"""The types in the signatures of an algorithm's functions.

Those that need torch are there for type checkers only, because the scheduler imports every algorithm, but no torch.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from raysim.algorithms.setting import Setting as Setting
from raysim.local import Local as Local
from raysim.local.model import Model as Model
from raysim.parts.errors import Problem
from raysim.terms import Arrival, Record
from raysim.terms import Tensor as Tensor

if TYPE_CHECKING:
    from raysim.local.loop import Trained as Trained
    from raysim.local.server_task import ServerTask as ServerTask
    from raysim.local.task import Task as Task
    from raysim.local.trainable import Correction as Correction
else:
    Correction = ServerTask = Task = Trained = Any

Arrivals: TypeAlias = Sequence[Arrival]
Problems: TypeAlias = Iterable[Problem]
Direction: TypeAlias = tuple[Tensor | None, Record]  # see `Moving.direction`
Weights: TypeAlias = "list[float] | dict[str, list[float]] | None"  # see `Central.weigh`
