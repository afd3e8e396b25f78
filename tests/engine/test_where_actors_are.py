"""Where the actors of a run are on several nodes, what they have of GPUs, and where the data are loaded."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from command_line import write
from conftest import digits
from nodes import Nodes, several_nodes
from waiting import PATIENT_S

import raysim
from raysim.workers.device import CONTEXT_BYTES, STAND_IN

GIB = 1 << 30
GPUS = (1, 1) if torch.cuda.is_available() else (2, 1)  # of the two nodes beside the head, which has none


@pytest.fixture(autouse=True, scope="module")
def gpus() -> Iterator[None]:
    """A GPU of 16 GiB, where there is no real one, also for processes of nodes."""
    with pytest.MonkeyPatch.context() as patch:
        if not torch.cuda.is_available():
            patch.setenv(STAND_IN, "16")
        yield


@pytest.fixture(scope="module")
def nodes(gpus: None) -> Iterator[Nodes]:
    with several_nodes(1, num_gpus=0, labels={"disk": "none"}) as nodes:
        for number, disk in zip(GPUS, ("fast", "slow"), strict=True):
            nodes.add(4, num_gpus=number, labels={"disk": disk})
        yield nodes


@pytest.mark.cluster
def test_four_actors_share_each_gpu_of_several_nodes(nodes: Nodes) -> None:
    actors = 4 * sum(GPUS)
    line = [sys.executable, "-m", "gpu_actors", nodes.address, actors, 0.25]
    support = Path(__file__).parents[1] / "support"
    done = subprocess.run([*map(str, line)], capture_output=True, text=True, timeout=PATIENT_S, cwd=support)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    on: dict[str, Counter[str]] = {}
    for actor in found:
        on.setdefault(actor["node"], Counter())[actor["environment"]] += 1
        if not torch.cuda.is_available():
            assert (actor["kind"], actor["limit_bytes"]) == ("cpu", 4 * GIB - CONTEXT_BYTES)
    expected = [{str(number): 4 for number in range(gpus)} for gpus in GPUS]
    assert sorted(map(dict, on.values()), key=len, reverse=True) == expected


def run(nodes: Nodes, folder: Path, **changes: object) -> raysim.Result:
    """Carries out a run on the nodes, and requires the digest of one in this process."""
    raw = digits(run__rounds=3, resources__client_actors=2, **changes)
    process = nodes.start(folder, raw)
    printed = process.communicate(timeout=PATIENT_S)[0]
    assert process.returncode == 0, printed
    (done,) = (folder / "runs").iterdir()
    result = raysim.Result(done)
    if result.info["machines"][0]["gpu"] is None:
        assert result.digest == raysim.run(raw, out=folder / "inline", inline=True).digest
    return result


@pytest.mark.cluster
def test_actors_are_on_nodes_with_the_labels_that_they_ask_for(nodes: Nodes, tmp_path: Path) -> None:
    """The only node with two GPUs is the one with the label; each client takes a GPU of its own there."""
    asked = {"labels": {"disk": "fast"}}
    share = GPUS[0] / 2
    result = run(nodes, tmp_path, resources__clients_on=asked, resources__gpus_per_client=share)
    given = [life["gpu"] for life in result.info["workers"] if life["worker"].startswith("client")]
    assert sorted(given) == [str(number) for number in range(2)][: GPUS[0]] * (2 // GPUS[0])


@pytest.mark.cluster
def test_what_no_node_has_is_told(nodes: Nodes, tmp_path: Path) -> None:
    process = nodes.start(tmp_path, digits(resources__aggregators_on={"labels": {"disk": "in(tape, wire)"}}))
    printed = " ".join(process.communicate(timeout=PATIENT_S)[0].split())
    assert process.returncode == 2
    assert "1 x (label disk in(tape, wire))" in printed


@pytest.mark.cluster
def test_doctor_examines_every_node(nodes: Nodes, tmp_path: Path) -> None:
    path = write(tmp_path, digits(resources__gpus_per_client=0.5))
    process = nodes.call("doctor", path, "--address", nodes.address)
    printed = process.communicate(timeout=PATIENT_S)[0]
    assert process.returncode == 0, printed
    assert len(re.findall(r"GB +there", printed)) == 3  # free disk, and whether the paths of the data are there
