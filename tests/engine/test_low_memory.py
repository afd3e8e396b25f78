"""Actors that Ray ends because their node runs low on memory."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import digits
from nodes import QUICK, several_nodes
from waiting import PATIENT_S

import raysim
from actors import JobFailed

LOW = {**QUICK, "memory_usage_threshold": 0.01, "memory_monitor_refresh_ms": 100}  # it is always low


@pytest.mark.cluster
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Ray leaves a socket to the collector
def test_a_run_on_a_node_without_memory_says_what_to_change(tmp_path: Path) -> None:
    with several_nodes(2, _system_config=LOW) as nodes:
        process = nodes.start(tmp_path, digits())
        printed = " ".join(process.communicate(timeout=PATIENT_S)[0].split())
    assert process.returncode == 1
    assert "its node ran low on memory, and Ray ended it" in printed
    assert "; lower resources.client_actors (2), raise resources.cpus_per_client (1), or" in printed
    assert "Traceback" not in printed
    (folder,) = (tmp_path / "runs").iterdir()
    assert raysim.Result(folder).info["status"] == "failed"


def test_a_worker_is_replaced_until_it_is_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.exceptions import OutOfMemoryError

    from actors.crew import Crews

    told: list[str] = []
    unused: Any = None
    crews = Crews(unused, told.append, 0.0)
    error = OutOfMemoryError("A worker was killed.")
    worker: Any = SimpleNamespace(name="client-0")
    causes: list[str] = []
    monkeypatch.setattr(crews, "replace", lambda worker, cause: causes.append(cause))
    crews.low_on_memory(worker, error)
    assert (causes, told) == (
        ["its node ran low on memory, and Ray ended it"],
        ["client-0: its node ran low on memory, and Ray ended it"],
    )

    def in_vain(worker: Any, cause: str) -> None:
        raise JobFailed("train", f"its worker died 3 times; the last time: {cause}", "")

    monkeypatch.setattr(crews, "replace", in_vain)
    with pytest.raises(JobFailed) as caught:
        crews.low_on_memory(worker, error)
    assert caught.value.memory == "node"
