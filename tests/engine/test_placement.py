"""Where the actors of a run are on several nodes, what they have of GPUs, and where the data are loaded."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from nodes import Nodes, several_nodes

from raysim.workers.device import CONTEXT_BYTES, STAND_IN

GIB = 1 << 30
GPUS = (1, 1) if torch.cuda.is_available() else (2, 1)  # of the two nodes beside the head, which has none


@pytest.fixture(autouse=True)
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU of 16 GiB, where there is no real one."""
    if not torch.cuda.is_available():
        monkeypatch.setenv(STAND_IN, "16")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with several_nodes(1, num_gpus=0, labels={"disk": "none"}) as nodes:
        for number, disk in zip(GPUS, ("fast", "slow"), strict=True):
            nodes.add(4, num_gpus=number, labels={"disk": disk}, resources={disk: 2})
        yield nodes


@pytest.mark.cluster
def test_four_actors_share_each_gpu_of_several_nodes(nodes: Nodes) -> None:
    actors = 4 * sum(GPUS)
    line = [sys.executable, "-m", "gpu_actors", nodes.address, actors, 0.25]
    done = subprocess.run([*map(str, line)], capture_output=True, text=True, timeout=240, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    on: dict[str, Counter[str]] = {}
    for actor in found:
        on.setdefault(actor["node"], Counter())[actor["visible"]] += 1
        assert actor["visible"] == actor["environment"]
        assert actor["share"] == 0.25
        if not torch.cuda.is_available():
            assert (actor["kind"], actor["limit_bytes"]) == ("cpu", 4 * GIB - CONTEXT_BYTES)
    expected = [{str(number): 4 for number in range(gpus)} for gpus in GPUS]
    assert sorted(map(dict, on.values()), key=len, reverse=True) == expected
