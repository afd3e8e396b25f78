"""`raysim doctor`: what it says of this machine, and whether a run would fail, as for states that cannot fit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import QUICKSTART, command, process, write
from conftest import digits

from actors import OnNode
from raysim.runs import room
from raysim.runs.room import Examination, Node, Room, States, differences, too_large


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def shown(folder: Path, *words: str, **changes: Any) -> tuple[int, str]:
    path = write(folder, digits(**changes))
    answer = command("doctor", path, "--inline", *words)
    return answer.exit_code, answer.stdout


def test_it_says_what_there_is(tmp_path: Path) -> None:
    code, text = shown(tmp_path)
    assert code == 0
    for part in ("this process (here)", "nothing is wrong", "torch", "memory free", "there"):
        assert part in text


def test_data_that_are_missing_are_told(tmp_path: Path) -> None:
    data = {"name": "arrays", "path": str(tmp_path / "d.npz"), "clients": 30, "partition": "iid"}
    code, text = shown(tmp_path, data=data)
    assert code == 0
    assert "d.npz" in text


def test_what_differs_is_told_with_the_nodes() -> None:
    here = Examination(())()
    other = replace(here, software={**here.software, "raysim": "0.1.0 0000", "torch": "1.0"})
    nodes = [
        OnNode(address, False, {}, node) for address, node in (("a", here), ("b", other), ("c", here), ("d", None))
    ]
    assert [*differences(nodes[::2])] == []
    raysim, torch = differences(nodes)
    assert "0.1.0 0000 on b" in raysim
    assert torch.startswith(f"torch: {here.software['torch']} on a and c, 1.0 on b; the last bits may differ")


def test_a_node_without_raysim_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost: OnNode[Node] = OnNode("b", False, {}, None, "ModuleNotFoundError: No module named 'raysim'")
    monkeypatch.setattr("raysim.cli.doctor.examined", lambda *_, **__: ([lost], None))
    code, text = shown(tmp_path)
    assert code == 1
    assert "b: could not be examined: ModuleNotFoundError: No module named 'raysim'; see Ray's logs there" in text


def test_a_wrong_scenario_is_refused(tmp_path: Path) -> None:
    answer = command("doctor", write(tmp_path, digits(run__round=3)), "--inline")
    assert (answer.exit_code, "did you mean 'rounds'" in answer.stderr) == (2, True)


@pytest.mark.ray
@pytest.mark.slow
def test_it_examines_a_local_ray() -> None:
    answer = process("doctor", QUICKSTART, "--set", "resources.gpus_per_client=0.5")
    assert answer.returncode == 1
    assert "the cluster must have 1 GPU, got 0" in " ".join(answer.stdout.split())


LINEAR = 640 * 4  # bytes of the vector of 64 x 10 weights
EF14 = {"name": "top_k", "share": 0.1, "memory": "ef14"}


@pytest.mark.parametrize(
    ("changes", "clients", "each"),
    [
        ({"algorithm": {"name": "scaffold"}}, 30, LINEAR),
        ({"algorithm": {"name": "scaffold"}, "run": {"rounds": 2}, "world": {"dispatch": {"per_round": 3}}}, 6, LINEAR),
        ({"algorithm": {"name": "local_only"}}, 30, LINEAR),
        ({"uplink": [EF14]}, 30, LINEAR),
        ({"uplink": [EF14 | {"entries": ["delta"]}], "algorithm": "scaffold"}, 30, 2 * LINEAR),
        ({"uplink": [EF14], "algorithm": "scaffold"}, 30, 3 * LINEAR),  # which sends two vectors
        ({"uplink": [{"name": "low_rank", "rank": 4, "memory": "none"}]}, 30, 4 * 64 * 4),  # Q of the last update
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
