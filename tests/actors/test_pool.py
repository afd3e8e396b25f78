"""Pools and sessions by themselves, with workers that know nothing of federated learning."""

import pickle
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from toys_jobs import Add, Adder, AddOrDieOnce, Attach, Carry, Die, DieOnce, Telling, dying
from waiting import until

from actors import (
    Group,
    InlinePool,
    Job,
    JobFailed,
    MissingResources,
    Needs,
    Pool,
    Query,
    Request,
    Setup,
    Value,
    finished,
)
from actors.job import Outcome, Took, values_of
from actors.process import ask, deferring


def finish(pool: Pool, group: str, request: Request[Any, Any]) -> Job[Any, Any]:
    return finished(pool, pool.submit(group, request))


# --- jobs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Nested(Query[None]):
    """Values in a field, in tuples within tuples, in a dictionary, and in a list."""

    name = "nested"
    one: Value[int]
    some: tuple[tuple[int, Value[int]], ...]
    named: dict[str, Value[int]]
    listed: list[Value[int]]

    def ask(self, worker: Any) -> None:
        return None


def test_a_requests_values_are_found_wherever_they_stand_each_once() -> None:
    first, second, third = Value(1), Value(2), Value(3)
    fourth = Value(4)
    request = Nested(first, ((7, second), (8, first)), {"a": third, "b": second}, [fourth])
    assert values_of(request) == [first, second, third, fourth]


def test_values_travel_empty_and_stay_the_same_values() -> None:
    """Ray sends what they hold beside them."""
    value = Value([1, 2, 3])
    travelled = pickle.loads(pickle.dumps(Nested(value, ((0, value),), {}, [])))
    (received,) = values_of(travelled)
    assert received.content is None
    assert travelled.one is travelled.some[0][1] is received


def test_a_job_that_is_done_keeps_no_value_of_its_request() -> None:
    value = Value(1)
    job = Job.of("client", Nested(value, (), {}, []), (), "")
    assert job.needs == [value]
    kept = weakref.ref(value)
    job.end(Outcome(None, "client-0", Took(0.0, 0.0)))
    del value
    assert kept() is None


def test_a_job_has_no_outcome_before_it_is_done() -> None:
    job = Job.of("client", Add(1), (), "add one")
    assert not job.done and len(job.values) == 1
    with pytest.raises(RuntimeError, match="add one: must be done to have an outcome, and is not"):
        _ = job.result


def test_what_an_answer_leaves_must_be_as_many_values_as_its_request_says() -> None:
    pool = InlinePool()
    pool.start(Group("client", Adder, 1, Needs(1.0)))

    class Generous(Add):
        def leaves(self) -> Any:
            return Value(), Value()

    with pytest.raises(JobFailed, match="add: must leave 2 values, left 1"):
        pool.submit("client", Generous(1))


def test_in_this_process_every_group_is_one_worker_of_its_own() -> None:
    pool = InlinePool()
    pool.start(Group("one", Adder, 2, Needs(1.0)))
    pool.start(Group("two", Adder, 1, Needs(1.0)))
    pool.set_up({"one": Attach(5)})
    assert finish(pool, "one", Add(1)).result == 5
    assert finish(pool, "two", Add(1)).result == 0


@pytest.mark.ray
@pytest.mark.parametrize(("factory", "setup"), [(Adder, Die()), (dying, Attach(1))])
@pytest.mark.chaos
def test_a_worker_that_dies_again_and_again_in_its_set_up_is_named(
    ray_pool: Any, factory: Callable[[], Adder], setup: Setup
) -> None:
    ray_pool.start(Group("client", factory, 1))
    with pytest.raises(JobFailed, match=r"client-0: set-up: it died 3 times; the last time: ") as caught:
        ray_pool.set_up({"client": setup})
    assert caught.value.label == "client-0: set-up"


@pytest.mark.ray
@pytest.mark.chaos
def test_a_set_up_that_kills_a_replacement_is_not_blamed_on_the_job_that_waits(ray_pool: Any, tmp_path: Path) -> None:
    """The worker dies of its job, its replacement of its set-up, the next one of nothing."""
    marks = tmp_path / "job", tmp_path / "set-up"
    marks[1].touch()
    ray_pool.start(Group("client", Adder, 1))
    ray_pool.set_up({"client": Attach(10)})
    ray_pool.set_up({"client": DieOnce(str(marks[1]))})
    job = ray_pool.submit("client", AddOrDieOnce(str(marks[0]), 1))
    until(marks[0].exists)
    marks[1].unlink()
    while not job.done:
        ray_pool.wait()
    assert (job.result, job.attempts) == (11, 1)
    assert marks[1].exists()


# --- places -----------------------------------------------------------------------------------------------------------


@pytest.mark.ray
def test_a_replacement_gets_the_place_of_the_dead_worker(ray_room: None, tmp_path: Path) -> None:
    """Both places together are all that there is."""
    from actors.actors import Actors
    from actors.cluster import RayPool
    from actors.placement import Demand, reserved

    with reserved(Demand({"client-0": Needs(1.5), "client-1": Needs(2.5), "aggregator-0": Needs()})) as placement:
        assert placement.nodes.keys() == {"client-0", "client-1"}
        actors = Actors(f"test-{time.time_ns()}", placement)
        actors.begin({"client-0": Needs(1.5)})
        pool = RayPool(actors)
        pool.start(Group("client", Adder, 1, Needs(1.5)))
        pool.start(Group("aggregator", Adder, 1))
        pool.set_up({"client": Attach(3)})
        dead = pool.processes["client-0"]
        assert finish(pool, "client", AddOrDieOnce(str(tmp_path / "mark"), 4)).result == 7
        assert finish(pool, "aggregator", Add(4)).result == 0
        assert pool.processes.keys() == {"client-0"} and pool.processes["client-0"] != dead
        pool.close()


@pytest.mark.ray
@pytest.mark.parametrize("wait_s", [pytest.param(0.0, marks=pytest.mark.slow), 1.0])
def test_what_others_hold_is_waited_for_and_then_told(
    ray_room: None, monkeypatch: pytest.MonkeyPatch, wait_s: float
) -> None:
    import ray

    from actors import placement
    from actors.placement import Demand, reserved

    with reserved(Demand({"client-0": Needs(7.0)})):
        until(lambda: ray.available_resources().get("CPU") == 1)
        monkeypatch.setattr(placement, "GRACE_S", 0.0)
        started = time.monotonic()
        wanted = r"room for 2 x \(1 CPU\), each on one node, got 8 CPU in all, of which 1 CPU free, after . s; ask for"
        with (
            pytest.raises(MissingResources, match=wanted),
            reserved(Demand({"client-0": Needs(1.0), "client-1": Needs(1.0)}, wait_s)),
        ):
            pass
        assert time.monotonic() - started >= wait_s
    monkeypatch.undo()
    with reserved(Demand({"client-0": Needs(8.0)})) as again:  # nothing is left behind
        assert again.group is not None


@pytest.mark.ray
@pytest.mark.slow
def test_actors_get_the_room_that_was_found_for_them_though_another_run_waits_for_it(ray_room: None) -> None:
    from ray.util import placement_group_table

    from actors.actors import Actors
    from actors.cluster import RayPool
    from actors.placement import Demand, reserved

    def wait_for_room() -> None:
        with reserved(Demand({"client-0": Needs(7.0)}, wait_s=240.0)):
            found.set()

    found = threading.Event()
    other = threading.Thread(target=wait_for_room)
    with reserved(Demand({f"client-{number}": Needs(1.0) for number in range(3)})) as placement:
        other.start()
        until(lambda: "PENDING" in {group["state"] for group in placement_group_table().values()})
        actors = Actors("first", placement)
        actors.begin({f"client-{number}": Needs(1.0) for number in range(3)})
        pool = RayPool(actors)
        pool.start(Group("loader", Adder, 1))
        pool.start(Group("client", Adder, 3, Needs(1.0)))
        pool.set_up({"loader": Attach(1)})
        pool.set_up({"client": Attach(1)})
        assert pool.size("client") == 3
        assert not found.is_set()
        pool.close()
    other.join()
    assert found.is_set()


@pytest.mark.ray
def test_a_cluster_that_may_grow_is_waited_for(ray_room: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from actors import placement
    from actors.placement import Demand, reserved

    monkeypatch.setattr(placement, "GRACE_S", 0.0)
    with pytest.raises(MissingResources, match="must have 9 CPU, got 8"), reserved(Demand({"a": Needs(9.0)})):
        pass
    with pytest.raises(MissingResources, match=r"1 x \(9 CPU\)"), reserved(Demand({"a": Needs(9.0)}, 1.0)):
        pass


# --- scheduler --------------------------------------------------------------------------------------------------------


def scheduled(program: Telling) -> Any:
    from actors.placement import Demand, Placement
    from actors.workforce import Terms, Workforce

    return Workforce(Terms(Demand({})), Placement()).run(program, f"test-{time.time_ns()}")


@pytest.mark.ray
def test_closing_a_run_interrupts_its_program_and_ends_its_actors(ray_room: None, tmp_path: Path) -> None:
    from ray.util import list_named_actors

    steps = scheduled(Telling(tmp_path / "note", "sleep"))
    assert next(steps) == 1
    until((tmp_path / "note").exists)
    steps.close()
    assert (tmp_path / "note").read_text() == "KeyboardInterrupt"
    until(lambda: not any(name.startswith("test-") for name in list_named_actors()))


@pytest.mark.ray
@pytest.mark.parametrize(("act", "cause"), [("raise", "ZeroDivisionError: of the program"), ("exit", "actor died")])
def test_the_end_of_a_program_or_of_its_scheduler_is_told(ray_room: None, tmp_path: Path, act: str, cause: str) -> None:
    steps = scheduled(Telling(tmp_path / "note", act))
    with pytest.raises(JobFailed, match=rf"scheduler: .*{cause}"):
        list(steps)


@pytest.mark.ray
def test_warnings_are_told_once_even_if_the_run_ends_at_once(
    ray_room: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert list(scheduled(Telling(tmp_path / "note", "warn"))) == [1]
    assert [record.getMessage() for record in caplog.records if record.name == "raysim"] == ["careful"]


def test_a_signal_does_not_end_the_making_of_an_inline_worker() -> None:
    """That imports torch, which aborts the process if an exception comes in between."""
    made: list[Adder] = []

    def factory() -> Adder:
        ask()
        made.append(Adder())
        return made[0]

    with pytest.raises(KeyboardInterrupt), deferring():
        InlinePool().start(Group("client", factory, 1))
    assert made


@pytest.mark.ray
@pytest.mark.parametrize(
    ("workers", "dies"),
    [(1, 0), (2, 3), *(pytest.param(*pair, marks=pytest.mark.slow) for pair in ((1, None), (1, 3), (2, None), (2, 0)))],
)
def test_jobs_are_given_ahead_of_what_they_need(ray_pool: Any, tmp_path: Path, workers: int, dies: int | None) -> None:
    """One after another needs what the last one leaves. When a worker dies, those that it was given ahead follow."""
    ray_pool.start(Group("client", Adder, workers))
    ray_pool.set_up({"client": Attach(1)})
    total, same, jobs = ray_pool.put(0), ray_pool.put("same"), []
    for number in range(6):
        request = Carry(total, same, str(tmp_path / "mark") if number == dies else "")
        jobs.append(ray_pool.submit("client", request))
        total, same = jobs[-1].left
    assert [finished(ray_pool, job).result for job in jobs] == [f"{number + 1} same" for number in range(6)]
    assert (ray_pool.get(total), ray_pool.get(same)) == (6, "same")
