"""What actors become, their share of a GPU, for which the CPU stands in, and that replies fit the tables."""

from pathlib import Path

import pytest
import torch
from command_line import QUICKSTART, command
from conftest import Raw, Simulate, digits

import raysim
from actors import Gang, Value
from raysim import BadInput, parse_scenario
from raysim.models import Module
from raysim.parts.process import isolated
from raysim.terms import SearchResult
from raysim.workers.device import CONTEXT_BYTES, STAND_IN, open_device
from raysim.workers.workshop import Become, LoadRequest, Workshop
from results import TABLES


def test_models_read_the_same_files_on_all_nodes(tmp_path: Path) -> None:
    weights = tmp_path / "w.pt"
    weights.write_bytes(b"0123")
    scenario = parse_scenario(digits(model=Module(module="torch.nn:Identity", weights=str(weights))))
    loaded = LoadRequest(Value(scenario)).call(object(), Gang())
    become, shop = Become(loaded.left, loaded.result), Workshop(scenario, 0.0)
    weights.write_bytes(b"another")
    with pytest.raises(BadInput, match=f"must read the same files on all nodes, .* at {weights}"):
        become.build(shop)


def test_groups_that_share_a_process_share_a_worker() -> None:
    scenario = parse_scenario(digits())
    loaded = LoadRequest(Value(scenario)).call(object(), Gang())
    become = Become(loaded.left, loaded.result)
    first, again = (become.build(Workshop(scenario, 0.0)) for _ in range(2))
    assert first is again
    assert Become(loaded.left, loaded.result).build(Workshop(scenario, 0.0)) is not first


@pytest.fixture(autouse=True)
def stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STAND_IN, "16")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")


def test_a_process_keeps_to_its_share_of_the_memory_with_what_cuda_takes() -> None:
    device = open_device(0.25)
    assert device.kind == "cpu"
    assert device.limit_bytes is not None
    assert device.limit_bytes + CONTEXT_BYTES == 4 * 2**30
    assert open_device(1.0).limit_bytes is None
    assert open_device(0.0).limit_bytes is None


def test_a_share_that_is_too_small_for_cuda_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"must be more than 0\.037 on this GPU, .*, got 0\.03; raise it"):
        open_device(0.03)


def test_a_stand_in_gives_the_bits_of_the_cpu(tmp_path: object) -> None:
    shared = raysim.run(digits(run__rounds=2, resources__gpus_per_client=0.25), out=str(tmp_path), inline=True)
    on_cpu = raysim.run(digits(run__rounds=2), out=str(tmp_path), inline=True)
    assert shared.digest == on_cpu.digest


def test_all_workers_of_a_run_that_uses_a_gpu_ask_for_deterministic_algorithms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STAND_IN)
    shared = parse_scenario(digits(resources__gpus_per_client=0.25))
    with isolated(torch=True):
        Workshop(shared, 0)  # of the server, on the CPU: in a process of its own, or in that of the clients
        assert torch.are_deterministic_algorithms_enabled()
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_server_on_a_cpu_accepts_tf32_for_clients_on_gpus(tmp_path: object) -> None:
    made = digits(run__rounds=4, local__precision="tf32", resources__gpus_per_client=1.0)
    assert len(raysim.run(made, out=str(tmp_path), inline=True).pandas("steps")) > 0


def test_a_stand_in_is_refused_outside_of_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    with pytest.raises(raysim.ScenarioError, match=f"{STAND_IN}: is for tests only, which set PYTEST_CURRENT_TEST too"):
        command("run", QUICKSTART, "--inline", "--out", tmp_path / "runs")
    assert not list(tmp_path.iterdir())


def test_what_a_search_finds_are_columns() -> None:
    assert set(SearchResult._fields) - {"own"} <= set(TABLES["coefficients"].names)


@pytest.mark.parametrize(
    "raw",
    [digits(run__compare_updates=False), digits(algorithm="decfedavg", topology="ring", world={})],
    ids=["server", "peers"],
)
def test_what_is_measured_has_columns(simulate: Simulate, raw: Raw) -> None:
    """A number of any other name would be in a column of the algorithm's own, and these algorithms have none."""
    result = simulate(raw)
    for table in ("steps", "updates"):
        assert result.table(table).schema.names == TABLES[table].names
