"""`raysim check --data` and `raysim doctor` say what clients' states take, and refuse what cannot fit."""

from pathlib import Path
from typing import Any

import pytest
from command_line import command, write
from conftest import digits

from raysim.doctor import room
from raysim.doctor.room import Room, too_large
from raysim.runs.states import States

LINEAR = 640 * 4  # bytes of the vector of 64 x 10 weights


@pytest.mark.parametrize(
    ("changes", "clients", "each"),
    [
        ({"algorithm": {"name": "scaffold"}}, 30, LINEAR),
        ({"algorithm": {"name": "scaffold"}, "run": {"rounds": 2}, "world": {"dispatch": {"per_round": 3}}}, 6, LINEAR),
        ({"algorithm": {"name": "fedavg"}}, None, 0),
    ],
)
def test_states_are_clients_times_the_vectors_that_each_keeps(
    changes: dict[str, Any], clients: int | None, each: int, tmp_path: Path
) -> None:
    path = write(tmp_path, digits(**{"model": {"name": "linear"}, **changes}))
    for words in (("check", path, "--data"), ("doctor", path, "--inline")):
        answer = command(*words)
        assert answer.exit_code == 0
        assert (f"{clients} clients x {each / 1000:.1f} kB" in answer.stdout) == (clients is not None)
        assert ("states: " in answer.stdout) == (clients is not None)


def test_states_that_cannot_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, digits(model={"name": "linear"}, algorithm={"name": "scaffold"}))
    monkeypatch.setattr("raysim.cli.check.room", lambda: Room(10_000, 1_000, 10_000))
    answer = command("check", path, "--data")
    assert answer.exit_code == 2
    assert "data.clients: what clients keep must fit, got 30 clients x 2.6 kB = 76.8 kB" in answer.stderr
    monkeypatch.setattr(room, "memory", lambda: (10_000, 1_000))
    answer = command("doctor", path, "--inline")
    assert answer.exit_code == 1
    assert "10.0 kB of memory; take fewer clients" in " ".join(answer.stdout.split())


def test_ray_has_the_disk_besides() -> None:
    states, there = States(1_000, 44_000_000), Room(12 * 10**9, 10**9, 40 * 10**9)
    assert too_large(states, there) is None
    assert str(too_large(states, there, on_ray=False)).endswith("keep less")
