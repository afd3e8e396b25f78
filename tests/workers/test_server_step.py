"""What a server step gives, and what it may leave out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Simulate, quadratic
from toys import Median
from witness import WitnessPool, execute

import raysim
from raysim import parse_scenario
from raysim.algorithms import Arrival, Population, Record
from raysim.workers.requests import StepRequest


class Steady(Median):
    """Keeps what it does not give, and counts its steps."""

    name: str = "steady"

    def init(self, model: Any, population: Population) -> Record:
        return {"w": model.w, "kept": model.w.new_tensor([3.0]), "steps": model.w.new_zeros(())}

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        assert state["kept"].tolist() == [3.0]
        return {"w": state["w"] * 0 + state["steps"] + state["kept"], "steps": state["steps"] + 1}


class Strange(Median):
    """Gives an entry that it did not begin with."""

    name: str = "strange"

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Record:
        return {**super().step(state, arrivals, updates, task), "new": state["w"]}


def test_a_step_keeps_what_it_leaves_out(simulate: Simulate) -> None:
    raw = quadratic([1.0, 2.0], "test_server_step:Steady", {"dispatch": {"per_round": 2}}, 4)
    assert simulate(raw).vectors()["w"].tolist() == [6.0]


@pytest.mark.parametrize("rounds", [4, 5])
def test_what_the_message_carries_is_stored_there_alone(rounds: int, tmp_path: Path) -> None:
    pool = WitnessPool()
    execute(quadratic([1.0, 2.0], "toys:Sending", {"dispatch": {"per_round": 2}}, rounds), tmp_path, pool)
    _, job = next(pair for pair in reversed(pool.seen) if isinstance(pair[0], StepRequest))
    stored = {name for name, value in job.left.state.items() if isinstance(value.content, np.ndarray)}
    assert stored == ({"steps"} if rounds == 4 else {"steps", "kept"})
    state = {name: entry.tolist() for name, entry in pool.server_state.items()}
    assert state == {"buffers": [], "w": [1.0], "kept": [3.0], "steps": rounds}


def test_a_step_must_give_entries_that_there_were(tmp_path: Any) -> None:
    raw = quadratic([1.0, 2.0], "test_server_step:Strange", {"dispatch": {"per_round": 2}}, 1)
    expected = r"step to version 1: .*must return only entries that `init` returned, \['buffers', 'w'\], got also \['n"
    with pytest.raises(raysim.RunFailed, match=expected):
        raysim.run(parse_scenario(raw), out=tmp_path, inline=True)
