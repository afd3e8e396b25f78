"""Runs whose actors stay for the next one: the same bits, and as much memory and as many files."""

import os
from pathlib import Path
from typing import Any

import pytest
from conftest import Raw, digits, forget
from run_actors import actors_of

import raysim
from raysim.engine.progress import Progress

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]


MINE = """
from raysim.algorithms import FedBuff

class Mine(FedBuff):
    name: str = "mine"

    def weigh(self, arrivals, population):
        return [{factor} * weight for weight in super().weigh(arrivals, population)]
"""


def run(raw: Raw, out: Path, **options: Any) -> raysim.Result:
    return raysim.run(raw, out=out, **options)


def pids(result: raysim.Result) -> set[int]:
    """The processes of a run's client actors and aggregators."""
    return {worker["pid"] for worker in result.info["workers"]}


def test_runs_after_one_another_have_the_same_actors_and_the_same_bits_as_in_this_process(tmp_path: Path) -> None:
    """Also after a run of other data, another model and another algorithm, and after one that was stopped."""

    def stop(progress: Progress) -> None:
        raise raysim.StopRun("enough")

    raw, other = digits(), digits(algorithm="scaffold", model__hidden=[8], data__clients=12, seed=3, local__epochs=2)
    results = [run(raw, tmp_path), run(other, tmp_path), run(raw, tmp_path)]
    assert run(digits(run__rounds=100_000), tmp_path, observers=[stop]).info["status"] == "stopped"
    again = run(raw, tmp_path)
    assert pids(results[0]) == pids(results[1]) == pids(results[2])
    inline = [run(one, tmp_path / "inline", inline=True).digest for one in (raw, other)]
    assert [result.digest for result in [*results, again]] == [*inline, inline[0], inline[0]]


@pytest.mark.chaos
def test_a_run_after_one_that_failed_has_new_actors(tmp_path: Path) -> None:
    first = run(digits(algorithm="toys:Counting"), tmp_path)
    with pytest.raises(raysim.RunFailed, match="divides by zero"):
        run(digits(algorithm="toys:Failing", run__rounds=30), tmp_path)
    again = run(digits(algorithm="toys:Counting"), tmp_path)
    assert again.digest == first.digest
    assert not pids(first) & pids(again)


def test_other_terms_are_other_resources_and_threads() -> None:
    """Not what each run gives its actors anyway, such as code of users' own."""
    from raysim.runs.place import terms_of

    def terms(**more: Any) -> Any:
        return terms_of(raysim.parse_scenario(digits(**more)))

    assert terms() == terms(seed=1, data__clients=9, algorithm="toys:Counting", resources__chunk=1)
    for other in (
        {"client_actors": 1},
        {"aggregators": 2, "shards": 2},
        {"threads": 2},
        {"gpus_per_client": 0.5},
        {"wait_s": 60},
    ):
        assert terms() != terms(resources=other), other


def test_actors_that_stay_have_the_code_that_a_module_was_imported_with_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "changing_on_disk.py"
    monkeypatch.syspath_prepend(str(tmp_path))
    raw, found = digits(algorithm="changing_on_disk:Mine"), list[raysim.Result]()
    for factor in (0.5, 0.25):  # texts of two lengths: bytecode is known by a file's second and size
        own.write_text(MINE.format(factor=factor))
        forget("changing_on_disk")
        found.append(run(raw, tmp_path / "runs"))
        assert found[-1].digest == run(raw, tmp_path / "inline", inline=True).digest
    assert pids(found[0]) == pids(found[1])
    assert found[0].digest != found[1].digest


@pytest.mark.slow
def test_memory_and_open_files_stay_as_they_are(tmp_path: Path) -> None:
    """Those of the scheduler and all workers, from the fifth run to the last. The benchmark looks at fifty."""
    import ray

    raw = digits(run__rounds=2)
    first = run(raw, tmp_path)
    actors = [ray.get_actor(name, namespace="raysim") for name in actors_of(first.folder.name).values()]
    found = ray.get([actor.__ray_call__.remote(lambda self: os.getpid()) for actor in actors])
    for _ in range(4):
        run(raw, tmp_path)
    before = [usage(pid) for pid in found]
    for _ in range(8):
        run(raw, tmp_path)
    for (memory, files), (memory_then, files_then) in zip(before, map(usage, found), strict=True):
        assert memory_then - memory < 16 << 20  # allocators take a dozen runs to come to rest
        assert files_then - files <= 2


def usage(pid: int) -> tuple[int, int]:
    """Bytes of memory that a process has of its own, and its open files."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    private = sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
    return private << 10, len(list(Path(f"/proc/{pid}/fd").iterdir()))


# Last of all, since actors of a run that failed end with it, and new ones take ten times a test.
def test_a_failing_client_stops_the_run_with_its_traceback(tmp_path: Path) -> None:
    with pytest.raises(raysim.RunFailed) as caught:
        run(digits(algorithm="toys:Failing", run__rounds=30), tmp_path)
    assert "ZeroDivisionError: this client divides by zero" in str(caught.value)
    assert "client 3" in str(caught.value) and "model version" in str(caught.value) and "train" in str(caught.value)
    assert "in update" in caught.value.traceback
    (folder,) = tmp_path.iterdir()
    result = raysim.Result(folder)
    assert result.info["status"] == "failed"
    assert "divides by zero" in result.info["error"]
    assert result.table("partition").num_rows > 0  # what was written until then is there
    updates = result.pandas("updates")
    assert 3 not in set(updates.client[updates.status == "used"])
