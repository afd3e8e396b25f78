"""The virtual clock, and who can be picked, by place."""

import math

import numpy as np
import pytest

from raysim.world import roster
from raysim.world.clock import Clock
from raysim.world.roster import Roster


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


@pytest.mark.parametrize(("few", "share"), [(4096, 0.2), (4096, 0.9), (40, 0.1), (0, 0.5)])
def test_clients_are_found_by_their_place_whoever_comes_and_goes(
    few: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """few: how many that cannot be picked are listed; of the others, counts are kept."""
    monkeypatch.setattr(roster, "_FEW", few)
    generator = np.random.default_rng(0)
    idle, available = generator.random((2, 3000)) >= share / 2
    found = Roster(idle)
    found.show(available)
    for step in range(300):
        client = int(generator.integers(3000))
        if step % 100 == 50:
            available = generator.random(3000) >= share / 2
            found.show(available)
        idle[client] = not idle[client]
        found.move(client, idle=bool(idle[client]))
        there = np.flatnonzero(idle & available)
        assert found.all().tolist() == there.tolist()
        assert found.size == len(there)
        places = (0, found.size // 2, found.size - 1)
        assert [found.at(place) for place in places] == [there[place] for place in places]
