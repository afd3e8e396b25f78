"""When clients are there: by a rule, or by a trace."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Raw, Simulate, quadratic

from raysim import ScenarioError, parse_scenario
from raysim.world.availability import RandomAvailability
from raysim.world.trace_availability import TraceAvailability

INTERVALS = [(0, 0.0, 2.5), (1, 5.0, 7.0), (1, 7.0, 7.0), (1, 8.5, 9.0)]


def scenario(path: Path, clients: int = 2, rounds: int = 9, **availability: Any) -> Raw:
    world = {
        "dispatch": {"concurrency": 1},
        "delay": {"name": "constant", "value": 1.0, "unit": "seconds"},
        "availability": {"name": "trace", "path": str(path), **availability},
    }
    return quadratic([0.0] * clients, {"name": "fedbuff", "buffer": 1}, world, rounds)


def intervals(folder: Path, rows: Sequence[tuple[object, ...]] = INTERVALS) -> Path:
    path = folder / "on.csv"
    pd.DataFrame(rows, columns=["client", "on", "off"]).to_csv(path, index=False)
    return path


def dispatched(simulate: Simulate, raw: Raw) -> list[tuple[float, int]]:
    """When clients were dispatched whose updates were used: the same in a dry run and a real one."""
    found = []
    for options in ((), ("--dry",)):
        updates = simulate(raw, *options).pandas("updates").query("status == 'used'")
        found.append(list(zip(updates.dispatched_at, updates.client, strict=True)))
        assert (updates.arrived_at == updates.dispatched_at + 1).all()  # also if the client has gone in between
    assert found[0] == found[1]
    return found[0]


def test_clients_are_dispatched_when_they_are_there(simulate: Simulate, tmp_path: Path) -> None:
    """Client 0 starts at 0, 1 and 2, and reports at 3 though it goes at 2.5; at 7, client 1 has just gone."""
    expected = [(0, 0), (1, 0), (2, 0), (5, 1), (6, 1), (8.5, 1), (10, 0), (11, 0), (12, 0)]
    assert dispatched(simulate, scenario(intervals(tmp_path), period=10)) == expected


def test_a_trace_begins_anew_after_its_last_end(simulate: Simulate, tmp_path: Path) -> None:
    """That is at 9, while client 1's update is still under way."""
    expected = [(0, 0), (1, 0), (2, 0), (5, 1), (6, 1), (8.5, 1), (9.5, 0), (10.5, 0), (14, 1)]
    assert dispatched(simulate, scenario(intervals(tmp_path))) == expected


def test_json_of_fedscale_has_a_period_for_each_client(simulate: Simulate, tmp_path: Path) -> None:
    path = tmp_path / "on.json"
    entries = {
        "7": {"active": [0], "inactive": [1], "finish_time": 5, "model": "a phone", "duration": 1},
        "3": {"active": [2, 3.5], "inactive": [3, 4.5], "finish_time": 6},
    }
    path.write_text(json.dumps(entries))
    raw = scenario(path, assign="in_order", rounds=8)  # client 0 is the file's 7, client 1 its 3
    expected = [(0, 0), (2, 1), (3.5, 1), (5, 0), (8, 1), (9.5, 1), (10.5, 0), (14, 1)]
    assert dispatched(simulate, raw) == expected


def test_a_timeline_knows_who_is_there_as_the_trace_does(tmp_path: Path) -> None:
    """It only looks at clients that come or go, with a period and times that are no exact floating-point numbers."""
    generator = np.random.default_rng(0)
    rows = []
    for client in range(20):
        bounds = np.sort(generator.random(6)) * 0.7
        rows += [(client, *bounds[place : place + 2]) for place in (0, 2, 4)]
    for options, clients in (({"period": 0.7}, 20), ({}, 20), ({"period": 0.7, "assign": "drawn"}, 30)):
        trace = TraceAvailability.model_validate({"path": str(intervals(tmp_path, rows)), **options})
        presence, time = trace.presence(5, clients), 0.0
        before = presence.mask(time)
        for _ in range(1000):
            later = presence.next_change(time)
            assert later > time
            assert (trace.mask(5, clients, np.nextafter(later, 0)) == before).all()
            time, before = later, presence.mask(later)
            assert (trace.mask(5, clients, time) == before).all()


def test_drawn_clients_have_the_times_of_somebody(tmp_path: Path) -> None:
    path = str(intervals(tmp_path, [(5, 0, 1), (9, 2, 3)]))
    trace = TraceAvailability(path=path, assign="drawn", period=4)
    early, late = trace.mask(0, 100, 0.5), trace.mask(0, 100, 2.5)
    assert (early != late).all()
    assert 20 < early.sum() < 80
    assert not (early == trace.mask(1, 100, 0.5)).all()


WRONG = {
    "client,on\n0,1\n": "must have the columns client, on, off, got client, on, without off",
    "client,on,off\n0,1,2\n1,5,4\n": "line 3: client 1 must come before it goes, got `on` 5 and `off` 4",
    "client,on,off\n1,4,6\n0,1,2\n1,5,8\n": "line 4: client 1 must have gone .* got 5 while line 2 lasts until 6",
    "client,on,off\n0,0,0\n1,0,0\n": "line 2: client 0 must be there at some time, got only intervals that end as",
    "client,on,off\n0,1,2\n1,5,5\n": "line 3: client 1 must be there at some time, got only intervals that end as",
    "client,on,off\n0,1,x\n1,5,4\n": "line 2: off must be a number of at least 0, got 'x'",
    "client,on,off\n0,1,2\n": r"must hold an interval for each of 2 clients, got none for 1 of them, such as \[1\]",
    "client,on,off\n0,1,2\n1,5,99\n": "line 3: client 1 must have gone by the end of the period, 50, got 99",
}


@pytest.mark.parametrize("content", WRONG)
def test_a_wrong_file_is_told_when_the_scenario_is_checked(content: str, tmp_path: Path) -> None:
    (tmp_path / "on.csv").write_text(content)
    with pytest.raises(ScenarioError, match="world.availability: .*on.csv.*" + WRONG[content]):
        parse_scenario(scenario(tmp_path / "on.csv", period=50))


WRONG_JSON = {
    "{": "must be JSON: ",
    "[]": "must hold an object with a key for each client, got list",
    '{"0": {"active": [0], "inactive": [1]}}': "the entry '0' must be a client's number, with `active` and",
    '{"0": {"active": [0], "inactive": [1, 2], "finish_time": 3}}': "the entry '0' must be",
    '{"x": {"active": [0], "inactive": [1], "finish_time": 3}}': "the entry 'x' must be a client's number",
    '{"0": {"active": [0, 2], "inactive": [1, 1], "finish_time": 3}}': "interval 1 of '0': client 0 must come before",
}


@pytest.mark.parametrize("content", WRONG_JSON)
def test_wrong_json_is_told_too(content: str, tmp_path: Path) -> None:
    (tmp_path / "on.json").write_text(content)
    with pytest.raises(ScenarioError, match="world.availability: .*on.json.*" + WRONG_JSON[content]):
        parse_scenario(scenario(tmp_path / "on.json", 1))


def test_a_trace_needs_delays_in_seconds(tmp_path: Path) -> None:
    raw = scenario(intervals(tmp_path))
    raw["world"]["delay"]["unit"] = "rounds"
    with pytest.raises(ScenarioError, match=r"a trace is in seconds, so world.delay must be too"):
        parse_scenario(raw)


def test_slots_begin_at_their_multiples() -> None:
    """That holds where the multiples are no exact floating-point numbers, too, so that time always goes on."""
    for slot in (0.1, 1 / 3, 0.7, 1.0, 3.3e5):
        availability, time = RandomAvailability(slot=slot, probability=0.5), 0.0
        for number in range(1, 2000):
            later = availability.next_change(time)
            assert later == number * slot
            assert (availability.number(later), availability.number(math.nextafter(later, 0))) == (number, number - 1)
            time = later
