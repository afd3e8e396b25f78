"""What a server step gives, and what it may leave out."""

from collections.abc import Sequence
from typing import Any

import pytest
from conftest import Simulate, quadratic
from toys import Median

import raysim
from raysim import parse_scenario
from raysim.algorithms import Arrival, Population, Record


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


def test_a_step_must_give_entries_that_there_were(tmp_path: Any) -> None:
    raw = quadratic([1.0, 2.0], "test_server_step:Strange", {"dispatch": {"per_round": 2}}, 1)
    expected = r"step to version 1: .*must return only entries that `init` returned, \['buffers', 'w'\], got also \['n"
    with pytest.raises(raysim.RunFailed, match=expected):
        raysim.run(parse_scenario(raw), out=tmp_path, inline=True)
