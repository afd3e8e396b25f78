"""Who can be picked, by place."""

import numpy as np
import pytest

from raysim.world import roster
from raysim.world.roster import Roster


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
