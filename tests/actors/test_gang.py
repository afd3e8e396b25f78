"""Workers that do one job together: by themselves, and as aggregators that share a search."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Raw, digits

import raysim
from actors import Gang, Group, InlinePool, Job, JobFailed, Pool
from raysim.engine.progress import Progress


class Member:
    """What each worker of a gang hosts."""

    def tell(self, gang: Gang, value: int) -> tuple[Any, ...]:
        """Answers differ on purpose."""
        told = gang.gather((gang.rank, value))
        return (gang.rank, gang.size, told), f"left by {gang.rank}"

    def die_once(self, gang: Gang, mark: str, value: int) -> tuple[list[int]]:
        """The last one does, while the others wait for it."""
        if gang.rank == gang.size - 1 and not Path(mark).exists():
            Path(mark).touch()
            os._exit(1)
        return (gang.gather(gang.rank + value),)

    def die_late(self, gang: Gang, mark: str) -> tuple[None]:
        """The last one does, once there is the mark; the others have answered by then."""
        gang.gather(None)
        while gang.rank == gang.size - 1:
            if Path(mark).exists():
                os._exit(1)
            time.sleep(0.01)
        return (None,)

    def linger_once(self, mark: str) -> tuple[str]:
        """Makes the mark, and stays until somebody ends it; not where there is the mark."""
        if not Path(mark).exists():
            Path(mark).touch()
            time.sleep(600)
        return ("done",)

    def die(self, gang: Gang) -> tuple[None]:
        if gang.rank == 1:
            os._exit(1)
        gang.gather(None)
        return (None,)

    def fail(self, gang: Gang, ranks: tuple[int, ...]) -> tuple[None]:
        if gang.rank in ranks:
            raise ZeroDivisionError(f"of member {gang.rank}")
        gang.gather(None)
        return (None,)

    def pass_on(self, first: Any, second: Any) -> tuple[Any, ...]:
        """Leaves something new, and what it was given."""
        return None, second + first, second, first


class Together(Member):
    """The same, done by all."""

    def pass_on(self, gang: Gang, first: Any, second: Any) -> tuple[Any, ...]:  # type: ignore[override]
        return super().pass_on(first, second)


def together(pool: Pool, method: str, *args: Any, values: int = 0) -> Job:
    job = pool.submit("aggregator", method, *args, values=values, together=True)
    while not job.done:
        pool.wait()
    return job


@pytest.fixture
def ray_pool(ray_session: None) -> Iterator[Any]:
    from actors.cluster import RayPool
    from actors.placement import Placement

    pool = RayPool(f"test-{time.time_ns()}", Placement())
    yield pool
    pool.close()


def start(pool: Pool, workers: int, hosted: type = Member) -> None:
    pool.start(Group("aggregator", hosted, workers, 0.0, 0.0))


@pytest.mark.ray
@pytest.mark.parametrize("size", [1, 3])
def test_members_gather_in_order_and_what_the_first_answers_is_kept(ray_pool: Any, size: int) -> None:
    import ray

    start(ray_pool, size)
    for value in (7, 8):  # they meet once
        job = together(ray_pool, "tell", value, values=1)
        assert job.result == (0, size, [(rank, value) for rank in range(size)])
        assert ray.get(job.values[0].content) == "left by 0"
        assert job.worker == "aggregator-0"


def test_in_this_process_a_gang_is_of_one() -> None:
    pool = InlinePool()
    start(pool, 3)
    job = together(pool, "tell", 7, values=1)
    assert job.result == (0, 1, [(0, 7)])
    assert job.values[0].content == "left by 0"


@pytest.mark.ray
def test_a_gang_meets_again_when_a_member_has_died(ray_pool: Any, tmp_path: Path) -> None:
    """All of them are replaced, and do the job, and others after it."""
    start(ray_pool, 2)
    assert together(ray_pool, "tell", 1, values=1).result[2] == [(0, 1), (1, 1)]
    job = together(ray_pool, "die_once", str(tmp_path / "mark"), 10)
    assert (job.result, job.attempts) == ([10, 11], 1)
    assert (tmp_path / "mark").exists()
    assert together(ray_pool, "tell", 2, values=1).result[2] == [(0, 2), (1, 2)]


@pytest.mark.ray
def test_who_goes_with_a_member_that_dies_late_leaves_no_job_undone(ray_pool: Any, tmp_path: Path) -> None:
    """The first has answered for the gang, and does a job of its own. That is not to blame."""
    start(ray_pool, 2)
    mark = str(tmp_path / "mark")
    together(ray_pool, "die_late", mark)
    job = ray_pool.submit("aggregator", "linger_once", mark)
    while not job.done:
        ray_pool.wait()
    assert (job.result, job.attempts) == ("done", 0)
    assert together(ray_pool, "tell", 2, values=1).result[2] == [(0, 2), (1, 2)]


@pytest.mark.ray
def test_a_job_that_kills_a_member_again_and_again_is_named(ray_pool: Any) -> None:
    start(ray_pool, 2)
    with pytest.raises(JobFailed, match=r"die: its worker died 3 times; the last time: "):
        together(ray_pool, "die")


@pytest.mark.ray
@pytest.mark.parametrize("ranks", [(0, 1), (1,)])
def test_what_a_member_raises_is_told(ray_pool: Any, ranks: tuple[int, ...]) -> None:
    """By all of them, or by one for whom the others wait."""
    start(ray_pool, 2)
    with pytest.raises(JobFailed, match=r"fail: ZeroDivisionError: of member \d") as caught:
        together(ray_pool, "fail", ranks)
    assert "in fail" in caught.value.traceback


@pytest.mark.ray
@pytest.mark.parametrize("hosted", [Member, Together])
def test_a_value_that_came_as_an_argument_is_not_stored_again(ray_pool: Any, hosted: type) -> None:
    import ray

    start(ray_pool, 2, hosted)
    first, second = (ray_pool.put(np.full(1000, number)) for number in (1.0, 2.0))
    job = ray_pool.submit("aggregator", "pass_on", first, second, values=3, together=hosted is Together)
    after = ray_pool.submit("aggregator", "pass_on", *job.values[:2], values=3, together=hosted is Together)
    while not after.done:
        ray_pool.wait()
    new, same, other = (value.content for value in job.values)
    assert (same, other) == (second.content, first.content)
    assert new not in (first.content, second.content)
    assert ray.get(after.values[0].content).tolist() == [5.0] * 1000
    assert [value.content for value in after.values[1:]] == [same, new]


@pytest.mark.ray
def test_an_argument_that_was_no_value_becomes_one(ray_pool: Any) -> None:
    import ray

    start(ray_pool, 1)
    job = ray_pool.submit("aggregator", "pass_on", [1], [2], values=3)
    while not job.done:
        ray_pool.wait()
    assert [ray.get(value.content) for value in job.values] == [[2, 1], [2], [1]]


# --- aggregators ------------------------------------------------------------------------------------------------------


def searching(server_data: str = "in_domain", **more: Any) -> Raw:
    kinds: dict[str, Raw] = {
        "in_domain": {"name": "in_domain", "samples": 100},
        "out_of_domain": {"name": "out_of_domain", "data": "digits", "samples": 100, "reference": 50},
    }
    algorithm = {"name": "feddle", "server_lr": 0.02, "server_epochs": 2}
    return digits(algorithm=algorithm, server_data=kinds[server_data], **{"run__rounds": 4, **more})


def run(raw: Raw, out: Path, **options: Any) -> raysim.Result:
    return raysim.run(raysim.parse_scenario(raw), out=out, **options)


def resources(aggregators: int, shards: int) -> Raw:
    return {"resources": {"chunk": 3, "aggregators": aggregators, "shards": shards}}


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize(("kind", "numbers"), [("in_domain", (1, 3)), ("out_of_domain", (2,))])
def test_any_number_of_aggregators_gives_the_bits_of_this_process(
    kind: str, numbers: tuple[int, ...], tmp_path: Path
) -> None:
    """Those of the shards: one shard gives others."""
    digests = {run(searching(kind, **resources(number, 3)), tmp_path).digest for number in numbers}
    assert digests == {run(searching(kind, **resources(1, 3)), tmp_path, inline=True).digest}
    assert digests != {run(searching(kind, **resources(1, 1)), tmp_path, inline=True).digest}


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_killed_aggregator_changes_no_bit(tmp_path: Path) -> None:
    """Its state is gone with it, and all are replaced."""
    import ray

    raw = searching(**resources(2, 3), run={"rounds": 150, "evaluate_every": 150})
    expected = run(raw, tmp_path / "inline", inline=True).digest
    killed: list[int] = []

    def kill_once(progress: Progress) -> None:
        if not killed and progress.steps:
            (folder,) = (tmp_path / "ray").iterdir()
            killed.append(progress.round)
            ray.kill(ray.get_actor(f"{folder.name}/aggregator-1", namespace="raysim"))

    result = run(raw, tmp_path / "ray", progress=kill_once)
    assert result.digest == expected
    assert killed[0] < 100
