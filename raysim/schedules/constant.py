"""A number that stays, after a rise."""

from typing import Annotated

from pydantic import Field

from raysim.schedules.schedule import Schedule


class ConstantSchedule(Schedule):
    """Stays at its value, once `warmup` is over."""

    name: str = "constant"
    value: Annotated[float, Field(examples=[0.1])]
    """The value."""

    def curve(self, position: float) -> float:
        return self.value

    @property
    def values(self) -> tuple[float, float]:
        return self.value, self.value
