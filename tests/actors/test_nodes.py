"""Runs on several nodes, of which some die and others come late. Their digests are those of runs in this process."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import write
from conftest import Raw, digits, override
from nodes import several_nodes
from object_store import s3_server
from waiting import until

import raysim
from results.location import location

pytestmark = pytest.mark.cluster

LARGE = {"model__hidden": [400], "run__rounds": 150, "run__checkpoint": {"every_rounds": 10, "every_s": None}}
# models of more than 100 KB, which Ray keeps in the memory of nodes
STATEFUL = {"algorithm": {"name": "ditto"}, "run__evaluate_every": 50}


def scenario(**changes: Any) -> Raw:
    return override(digits(), **{**LARGE, "resources": {"client_actors": 2, "chunk": 2}, **changes})


def begun(folder: Path, rounds: int = 1) -> bool:
    """Whether there is a checkpoint of so many rounds."""
    return any(json.loads(file.read_text())["round"] >= rounds for file in folder.glob("runs/*/checkpoint/*.json"))


def ended(folder: Path, run: Any, raw: Raw, out: str | Path | None = None) -> raysim.Result:
    """Waits for a run's end. Its digest must be that of a run in this process."""
    printed: str = run.communicate(timeout=400)[0]
    assert run.returncode == 0, printed
    (done,) = raysim.load(out or folder / "runs").runs
    expected = raysim.run(raw, out=folder / "inline", inline=True)
    result = raysim.Result(done.folder)
    assert result.digest == expected.digest
    return result


def test_a_run_goes_on_without_the_node_of_a_client(tmp_path: Path) -> None:
    """No other node has room for it."""
    raw = scenario()
    with several_nodes(1) as nodes:
        lost = nodes.add(1)
        run = nodes.start(tmp_path, raw)
        until(lambda: begun(tmp_path), run)
        nodes.kill(lost)
        ended(tmp_path, run, raw)


def test_a_run_goes_on_without_the_node_that_held_states(tmp_path: Path) -> None:
    """From its checkpoint, unless other nodes have copies of all states that it needs."""
    raw = scenario(**STATEFUL, run__rounds=600)
    with several_nodes(1) as nodes:
        lost = nodes.add(1)
        run = nodes.start(tmp_path, raw)
        until(lambda: begun(tmp_path, 60), run)  # both actors have left states by then
        nodes.kill(lost)
        ended(tmp_path, run, raw)


def test_a_run_waits_for_a_node_if_it_has_none(tmp_path: Path) -> None:
    raw = scenario(resources={"client_actors": 1, "chunk": 2})
    with several_nodes(0) as nodes:
        lost = nodes.add(1)
        run = nodes.start(tmp_path, raw)
        until(lambda: begun(tmp_path), run)
        nodes.kill(lost)
        nodes.add(1)
        ended(tmp_path, run, raw)


def test_two_runs_that_start_at_once_both_end(tmp_path: Path) -> None:
    """The cluster has room for one and a half of them, so one waits for the other."""
    raw = scenario(resources={"client_actors": 2, "chunk": 2, "wait_s": 300}, run__rounds=20)
    with several_nodes(1) as nodes:
        nodes.add(2)
        folders = [tmp_path / "one", tmp_path / "two"]
        for folder in folders:
            folder.mkdir()
        runs = [nodes.start(folder, raw) for folder in folders]
        for folder, run in zip(folders, runs, strict=True):
            ended(folder, run, raw)


def test_a_run_goes_on_on_another_cluster_after_the_head_has_died(tmp_path: Path) -> None:
    """The process that started it dies with the head. Its folder is on an object store."""
    raw = scenario(run__rounds=60)
    with s3_server() as bucket:
        out = f"{bucket}/head"
        with several_nodes(1) as nodes:
            nodes.add(1)
            run = nodes.call("run", write(tmp_path, raw), "--out", out, "--address", nodes.address)
            until(lambda: has_checkpoint(out), run)
            run.kill()
            run.communicate()
            nodes.kill_head()
        (left,) = raysim.load(out).runs
        assert left.standing == "killed"
        with several_nodes(1) as nodes:
            nodes.add(1)
            result = ended(tmp_path, nodes.call("resume", left.folder, "--address", nodes.address), raw, out)
        assert result.info["resumed"][0]["version"] >= 1


def has_checkpoint(out: str) -> bool:
    """Whether a run below `out` has written one. What is listed may be gone a moment later, such as a trial write."""
    try:
        return any(location(out).glob("*/checkpoint/checkpoint.json"))
    except FileNotFoundError:
        return False
