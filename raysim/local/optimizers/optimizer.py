"""What moves the parameters in a training, given gradients."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from pydantic import model_validator

from raysim.schedules import Schedulable
from raysim.terms import Tensor

State = dict[str, "Tensor"]  # vectors (n,) by name
BESIDE = ("lr", "weight_decay")  # keys that all optimisers share


class Optimizer(Schedulable):
    """How a gradient moves the parameters. A subclass adds its `name`, `init` if it has a state, and `move`."""

    decoupled: ClassVar[bool] = False
    """Whether weight decay shrinks the parameters themselves. Otherwise it is added to the gradient."""

    name: str
    keep: bool = False
    """Whether each client or peer keeps the state from one training to the next, as part of its own state. Otherwise
    every training starts afresh. Only trainings of stream 0, which is the default of `task.train`, use it."""

    @model_validator(mode="before")
    @classmethod
    def _beside(cls, given: Any) -> Any:
        for key in BESIDE if isinstance(given, dict) else ():
            if key in given and key not in cls.model_fields:
                raise ValueError(f"{key} must stand beside the optimizer, as `{key}: {given[key]}`, not in its block")
        return given

    def init(self, w: Tensor) -> State:
        """Returns the state before the first step: vectors like w, (n,), or none."""
        return {}

    @abstractmethod
    def move(self, w: Tensor, gradient: Tensor, state: State, lr: float, taken: int) -> None:
        """Takes a step: changes w, (n,), and the state in place. The gradient, (n,), may be overwritten.

        taken: how many steps were taken since `init`.
        """
