"""The delays and availabilities that scenario files can name."""

from raysim.world.availability import Always, Availability, Periodic, RandomAvailability
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
)
from raysim.world.trace_availability import TraceAvailability
from raysim.world.trace_delay import TraceDelay

DELAYS: tuple[type[Delay], ...] = (
    NoDelay,
    ConstantDelay,
    HalfNormalDelay,
    LogNormalDelay,
    UniformDelay,
    ExponentialDelay,
    ComputeDelay,
    TraceDelay,
    ScriptedDelay,
)

AVAILABILITY: tuple[type[Availability], ...] = (Always, RandomAvailability, Periodic, TraceAvailability)
