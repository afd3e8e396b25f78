"""The virtual clock."""

import math

import pytest

from raysim.world.clock import Clock


def test_clock_orders_by_time_then_priority_then_serial() -> None:
    clock: Clock[str] = Clock()
    for time, priority, event in [(2.0, 0, "d"), (1.0, 1, "b"), (1.0, 0, "a"), (1.0, 1, "c")]:
        clock.schedule(time, priority, event)
    assert [clock.pop() for _ in range(4)] == ["a", "b", "c", "d"]
    assert clock.now == 2.0


@pytest.mark.parametrize("time", [-1.0, math.inf, math.nan])
def test_clock_refuses_times_that_never_come(time: float) -> None:
    with pytest.raises(ValueError, match="finite time"):
        Clock[str]().schedule(time, 0, "never")
