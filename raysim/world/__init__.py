"""The simulated world: dispatch, delays, availability, and the timeline that they make."""

from raysim.world.availability import Always, Availability, Dropout, Periodic, RandomAvailability
from raysim.world.delay import (
    ComputeDelay,
    ConstantDelay,
    Delay,
    ExponentialDelay,
    HalfNormalDelay,
    LogNormalDelay,
    NoDelay,
    ScriptedDelay,
    UniformDelay,
    Work,
)
from raysim.world.world import Dispatch, World

DELAYS: tuple[type[Delay], ...] = (
    NoDelay,
    ConstantDelay,
    HalfNormalDelay,
    LogNormalDelay,
    UniformDelay,
    ExponentialDelay,
    ComputeDelay,
    ScriptedDelay,
)
AVAILABILITY: tuple[type[Availability], ...] = (Always, RandomAvailability, Periodic)

__all__ = ["AVAILABILITY", "DELAYS", "Delay", "Dispatch", "Dropout", "Work", "World"]
