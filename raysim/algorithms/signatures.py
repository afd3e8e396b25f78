"""The types in the signatures of an algorithm's functions.

Those that need torch are there for type checkers only, because the scheduler imports every algorithm, but no torch.
"""

from typing import TYPE_CHECKING, Any

from raysim.algorithms.setting import Setting
from raysim.local import Local
from raysim.local.model import Model
from raysim.terms import Tensor

if TYPE_CHECKING:
    from raysim.local.correction import Correction
    from raysim.local.server_task import ServerTask
    from raysim.local.task import Task
    from raysim.local.train import Trained
else:
    Correction = ServerTask = Task = Trained = Any

__all__ = ["Correction", "Local", "Model", "ServerTask", "Setting", "Task", "Tensor", "Trained"]
