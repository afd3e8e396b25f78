"""A number that stays the same once a warm-up is over."""

from typing import Annotated

from pydantic import Field

from raysim.schedules.schedule import Schedule


class ConstantSchedule(Schedule):
    """The value stays the same once `warmup` is over."""

    name: str = "constant"
    value: Annotated[float, Field(examples=[0.1])]
    """The value."""

    def curve(self, position: float) -> float:
        return self.value

    @property
    def values(self) -> tuple[float, float]:
        return self.value, self.value
