"""Workers that do one job together: by themselves, and as aggregators that share a search."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Raw, digits
from toys_jobs import DieLate, DieOnceTogether, DieTogether, Fail, LingerOnce, PassOn, PassOnTogether, Tell

import raysim
from actors import Group, InlinePool, Job, JobFailed, Pool, Request, finished
from raysim.engine.progress import Progress


def finish(pool: Pool, request: Request[Any, Any]) -> Job[Any, Any]:
    return finished(pool, pool.submit("aggregator", request))


def start(pool: Pool, workers: int) -> None:
    pool.start(Group("aggregator", object, workers))


@pytest.mark.ray
@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_members_gather_in_order_and_what_the_first_answers_is_kept(ray_pool: Any, size: int) -> None:
    import ray

    start(ray_pool, size)
    for value in (7, 8):  # they meet once
        job = finish(ray_pool, Tell(value))
        assert job.result == (0, size, [(rank, value) for rank in range(size)])
        assert ray.get(job.left[0].content) == "left by 0"
        assert job.ended.worker == "aggregator-0"


def test_in_this_process_a_gang_is_of_one() -> None:
    pool = InlinePool()
    start(pool, 3)
    job = finish(pool, Tell(7))
    assert job.result == (0, 1, [(0, 7)])
    assert job.left[0].content == "left by 0"


@pytest.mark.ray
@pytest.mark.chaos
def test_a_gang_meets_again_when_a_member_has_died(ray_pool: Any, tmp_path: Path) -> None:
    """All of them are replaced, and do the job, and others after it."""
    start(ray_pool, 2)
    assert finish(ray_pool, Tell(1)).result[2] == [(0, 1), (1, 1)]
    job = finish(ray_pool, DieOnceTogether(str(tmp_path / "mark"), 10))
    assert (job.result, job.attempts) == ([10, 11], 1)
    assert (tmp_path / "mark").exists()
    assert finish(ray_pool, Tell(2)).result[2] == [(0, 2), (1, 2)]


@pytest.mark.ray
@pytest.mark.chaos
def test_who_goes_with_a_member_that_dies_late_leaves_no_job_undone(ray_pool: Any, tmp_path: Path) -> None:
    """The first has answered for the gang, and does a job of its own. That is not to blame."""
    start(ray_pool, 2)
    mark = str(tmp_path / "mark")
    finish(ray_pool, DieLate(mark))
    job = finish(ray_pool, LingerOnce(mark))
    assert (job.result, job.attempts) == ("done", 0)
    assert finish(ray_pool, Tell(2)).result[2] == [(0, 2), (1, 2)]


@pytest.mark.ray
@pytest.mark.chaos
def test_a_job_that_kills_a_member_again_and_again_is_named(ray_pool: Any) -> None:
    start(ray_pool, 2)
    with pytest.raises(JobFailed, match=r"die: its worker died 3 times; the last time: "):
        finish(ray_pool, DieTogether())


@pytest.mark.ray
def test_what_a_member_raises_is_told(ray_pool: Any) -> None:
    """By all of them, or by one for whom the others wait."""
    start(ray_pool, 2)
    for ranks in ((0, 1), (1,)):
        with pytest.raises(JobFailed, match=r"fail: ZeroDivisionError: of member \d") as caught:
            finish(ray_pool, Fail(ranks))
        assert "in call" in caught.value.traceback


@pytest.mark.ray
@pytest.mark.parametrize("kind", [PassOn, PassOnTogether])
@pytest.mark.slow
def test_a_value_of_the_request_is_not_stored_again(ray_pool: Any, kind: type[PassOn]) -> None:
    import ray

    start(ray_pool, 2)
    first, second = (ray_pool.put(np.full(1000, number)) for number in (1.0, 2.0))
    job = ray_pool.submit("aggregator", kind(first, second))
    after = finish(ray_pool, kind(job.left.new, job.left.second))
    new, same, other = (value.content for value in job.left)
    assert (same, other) == (second.content, first.content)
    assert new not in (first.content, second.content)
    assert ray.get(after.left.new.content).tolist() == [5.0] * 1000
    assert [after.left.second.content, after.left.first.content] == [same, new]


def test_in_this_process_a_value_of_the_request_is_left_as_it_is() -> None:
    pool = InlinePool()
    start(pool, 1)
    first, second = pool.put([1]), pool.put([2])
    new, same, other = finish(pool, PassOn(first, second)).left
    assert (new.content, same.content, other.content) == ([2, 1], [2], [1])
    assert same.content is second.content


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
@pytest.mark.parametrize(("kind", "number"), [("in_domain", 3), ("out_of_domain", 2)])
@pytest.mark.slow
def test_any_number_of_aggregators_gives_the_bits_of_this_process(kind: str, number: int, tmp_path: Path) -> None:
    """Those of the shards: one shard gives others."""
    digest = run(searching(kind, **resources(number, 3)), tmp_path).digest
    assert digest == run(searching(kind, **resources(1, 3)), tmp_path, inline=True).digest
    assert digest != run(searching(kind, **resources(1, 1)), tmp_path, inline=True).digest


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.chaos
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

    result = run(raw, tmp_path / "ray", observers=[kill_once])
    assert result.digest == expected
    assert killed
