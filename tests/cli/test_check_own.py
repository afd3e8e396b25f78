"""`raysim check --data` tells what is wrong with own delays, availability, policies and algorithms before a run."""

from pathlib import Path

import pytest
from command_line import command, write
from conftest import Raw, digits

MODULE = """
import numpy as np
from raysim.algorithms import FedBuff
from raysim.world import Availability, Delay, Policy

class Backwards(Delay):
    name: str = "backwards"
    unit: str = "seconds"
    def duration(self, stream, client, number, cost):
        return -1.0

class Words(Backwards):
    def duration(self, stream, client, number, cost):
        return "2"

class Few(Availability):
    name: str = "few"
    def mask(self, seed, clients, time):
        return np.ones(3, dtype=bool)
    def next_change(self, time):
        return time + 1

class Stands(Few):
    def mask(self, seed, clients, time):
        return np.zeros(clients, dtype=bool)
    def next_change(self, time):
        return time

class Twice(Policy):
    name: str = "twice"
    def pick(self, idle, wanted, samples, generator):
        return [idle[0]] * wanted

class OneWeight(FedBuff):
    name: str = "one_weight"
    def weigh(self, arrivals, population):
        return [1.0]

class Misspelt(FedBuff):
    name: str = "misspelt"
    def update(self, task, message, state):
        return task.train(task.received, lrr=0.1)

class NoTensor(FedBuff):
    name: str = "no_tensor"
    def init(self, model, population):
        return {"w": model.w, "count": 0.0}
"""

BUFFER = {"buffer": 2}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"world__delay": "own_wrongs:Backwards"},
            "world.delay.duration: must return a finite number of seconds, 0 or more, got -1.0 for client",
        ),
        ({"world__delay": "own_wrongs:Words"}, "world.delay.duration: must return a finite number of seconds, 0 or mo"),
        ({"world__availability": "own_wrongs:Few"}, "world.availability.mask: must return an array of bool (6,), got "),
        (
            {"world__availability": "own_wrongs:Stands"},
            "world.availability.next_change: must return a time after 0, math.inf if nothing will change, got 0.0",
        ),
        ({"world__dispatch__policy": "own_wrongs:Twice"}, "world.dispatch.policy: own_wrongs:Twice must pick at most "),
        (
            {"algorithm": {"name": "own_wrongs:OneWeight", **BUFFER}},
            "algorithm: OneWeight.weigh, of the step to version 1: must return a weight for each of 2 arrivals, got 1",
        ),
        (
            {"algorithm": {"name": "own_wrongs:Misspelt", **BUFFER}},
            "algorithm: must update a client, got TypeError: task.train: unknown keyword 'lrr' (did you mean 'lr'?)",
        ),
        (
            {"algorithm": {"name": "own_wrongs:NoTensor", **BUFFER}},
            "algorithm: NoTensor.init: 'count' of the server's state must be a tensor, got 0.0",
        ),
    ],
)
def test_what_is_wrong_with_own_parts_is_told_before_a_run(
    change: Raw, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_wrongs.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    raw = digits(**change)
    path = write(tmp_path, {**raw, "data": {"name": "digits", "clients": 6, "partition": "iid"}})
    answer = command("check", path, "--data")
    assert answer.exit_code == 2
    (line,) = answer.stderr.splitlines()
    assert line.removeprefix(f"{path}: ").startswith(expected)
