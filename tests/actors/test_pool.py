"""Pools and sessions by themselves, with workers that know nothing of federated learning."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from actors import Group, InlinePool, JobFailed, MissingResources, Pool, Value


@dataclass
class Adder:
    """Adds what it was set up with."""

    amount: int = 0

    def attach(self, amount: int) -> tuple[None]:
        self.amount = amount
        return (None,)

    def add(self, value: int) -> tuple[int, int]:
        return self.amount, value + self.amount

    def sleep(self, seconds: float) -> tuple[None]:
        time.sleep(seconds)
        return (None,)

    def die(self, *_: Any) -> tuple[None]:
        os._exit(1)

    def die_once(self, mark: str, value: int) -> tuple[int]:
        if not Path(mark).exists():
            Path(mark).touch()
            os._exit(1)
        return (value + self.amount,)


def dying() -> Adder:
    os._exit(1)


@dataclass(frozen=True)
class Making:
    """A factory that cannot be hashed."""

    options: dict[str, list[int]] = field(default_factory=lambda: {"sizes": [1, 2]})

    def __call__(self) -> Adder:
        return Adder(len(self.options))


def finish(pool: Pool, group: str, method: str, *args: Any, values: int = 0) -> tuple[Any, list[Value]]:
    job = pool.submit(group, method, *args, values=values)
    while not job.done:
        pool.wait()
    return job.result, job.values


def test_inline_equal_factories_share_what_they_build_hashable_or_not() -> None:
    pool = InlinePool()
    pool.start(Group("one", Making(), 2, 1.0, 0.0))
    pool.start(Group("two", Making(), 1, 1.0, 0.0))
    pool.start(Group("other", Making({}), 1, 1.0, 0.0))
    pool.broadcast("one", "attach", 5)
    assert finish(pool, "two", "add", 1, values=1)[0] == 5
    assert finish(pool, "other", "add", 1, values=1)[0] == 0


@pytest.fixture
def ray_pool(ray_session: None) -> Iterator[Any]:
    """Outside a scheduler actor: this process is the one that submits."""
    from actors.cluster import RayPool
    from actors.placement import Placement

    pool = RayPool(f"test-{time.time_ns()}", Placement())
    yield pool
    pool.close()


@pytest.mark.ray
@pytest.mark.parametrize(("factory", "method"), [(Adder, "die"), (dying, "attach")])
def test_a_worker_that_dies_again_and_again_in_its_set_up_is_named(
    ray_pool: Any, factory: Callable[[], Adder], method: str
) -> None:
    ray_pool.start(Group("client", factory, 1, 0.0, 0.0))
    with pytest.raises(JobFailed, match=r"client-0: set-up: it died 3 times; the last time: ") as caught:
        ray_pool.broadcast("client", method, 1)
    assert caught.value.label == "client-0: set-up"


@pytest.mark.ray
def test_a_set_up_that_kills_a_replacement_is_not_blamed_on_the_job_that_waits(ray_pool: Any, tmp_path: Path) -> None:
    """The worker dies of its job, its replacement of its set-up, the next one of nothing."""
    marks = tmp_path / "job", tmp_path / "set-up"
    marks[1].touch()
    ray_pool.start(Group("client", Adder, 1, 0.0, 0.0))
    ray_pool.broadcast("client", "attach", 10)
    ray_pool.broadcast("client", "die_once", str(marks[1]), 0)
    job = ray_pool.submit("client", "die_once", str(marks[0]), 1)
    while not marks[0].exists():
        time.sleep(0.01)
    marks[1].unlink()
    while not job.done:
        ray_pool.wait()
    assert (job.result, job.attempts) == (11, 1)
    assert marks[1].exists()


# --- places -----------------------------------------------------------------------------------------------------------


@pytest.mark.ray
def test_a_replacement_gets_the_place_of_the_dead_worker(ray_session: None, tmp_path: Path) -> None:
    """Both places together are all that there is."""
    from actors.cluster import RayPool
    from actors.placement import Demand, reserved

    with reserved(Demand({"client-0": (1.5, 0.0), "client-1": (2.5, 0.0), "aggregator-0": (0.0, 0.0)})) as placement:
        assert placement.names == ("client-0", "client-1")
        assert placement.strategy("aggregator-0") is None
        pool = RayPool(f"test-{time.time_ns()}", placement)
        pool.start(Group("client", Adder, 1, 1.5, 0.0))
        pool.start(Group("aggregator", Adder, 1, 0.0, 0.0))
        pool.broadcast("client", "attach", 3)
        assert finish(pool, "client", "die_once", str(tmp_path / "mark"), 4)[0] == 7
        assert finish(pool, "aggregator", "add", 4, values=1)[0] == 0
        pool.close()


@pytest.mark.ray
@pytest.mark.parametrize("wait_s", [0.0, 1.0])
def test_what_others_hold_is_waited_for_and_then_told(
    ray_session: None, monkeypatch: pytest.MonkeyPatch, wait_s: float
) -> None:
    from actors import placement
    from actors.placement import Demand, reserved

    with reserved(Demand({"client-0": (3.0, 0.0)})):
        time.sleep(1.5)  # until Ray tells others that three CPUs are taken
        monkeypatch.setattr(placement, "GRACE_S", 0.0)
        started = time.monotonic()
        wanted = r"room for 2 x \(1 CPU\), each on one node, got 4 CPU in all, of which 1 CPU free, after . s; ask for"
        with (
            pytest.raises(MissingResources, match=wanted),
            reserved(Demand({"client-0": (1.0, 0.0), "client-1": (1.0, 0.0)}, wait_s)),
        ):
            pass
        assert wait_s <= time.monotonic() - started < wait_s + 5
    monkeypatch.undo()
    with reserved(Demand({"client-0": (4.0, 0.0)})) as again:  # nothing is left behind
        assert again.group is not None


@pytest.mark.ray
def test_a_cluster_that_may_grow_is_waited_for(ray_session: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from actors import placement
    from actors.placement import Demand, reserved

    monkeypatch.setattr(placement, "GRACE_S", 0.0)
    with pytest.raises(MissingResources, match="must have 5 CPU, got 4"), reserved(Demand({"a": (5.0, 0.0)})):
        pass
    with pytest.raises(MissingResources, match=r"1 x \(5 CPU\)"), reserved(Demand({"a": (5.0, 0.0)}, 1.0)):
        pass


def test_a_local_ray_is_large_enough_for_every_run_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    from actors import session
    from actors.placement import Demand

    seen: dict[str, Any] = {}
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(session.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(session.ray, "init", lambda **options: seen.update(options))
    session.connect([Demand({"a": (1.0, 0.0)}), Demand({f"c{n}": (1.5, 0.0) for n in range(99)})])
    assert (seen["address"], seen["num_cpus"]) == ("local", 149)


# --- scheduler --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Telling:
    """An engine that notes how it ended. act: what it does after its first item."""

    note: Path
    act: str

    def __call__(self, pool: Pool) -> Iterator[int]:
        try:
            pool.start(Group("client", Adder, 1, 0.0, 0.0))
            yield 1
            if self.act == "exit":
                os._exit(1)
            if self.act == "raise":
                raise ZeroDivisionError("of the engine")
            finish(pool, "client", "sleep", 600.0)
        except BaseException as error:
            self.note.write_text(type(error).__name__)
            raise


def scheduled(engine: Telling) -> Any:
    from actors.placement import Placement
    from actors.session import run_on_ray

    return run_on_ray(engine, f"test-{time.time_ns()}", Placement())


@pytest.mark.ray
def test_closing_a_run_interrupts_its_engine_and_ends_its_actors(ray_session: None, tmp_path: Path) -> None:
    from ray.util import list_named_actors

    steps = scheduled(Telling(tmp_path / "note", "sleep"))
    assert next(steps) == 1
    time.sleep(1.0)  # it waits for a job
    started = time.monotonic()
    steps.close()
    assert time.monotonic() - started < 5
    assert (tmp_path / "note").read_text() == "KeyboardInterrupt"
    while any(name.startswith("test-") for name in list_named_actors()):
        assert time.monotonic() - started < 20
        time.sleep(0.1)


@pytest.mark.ray
@pytest.mark.parametrize(("act", "cause"), [("raise", "ZeroDivisionError: of the engine"), ("exit", "actor died")])
def test_the_end_of_an_engine_or_of_its_scheduler_is_told(
    ray_session: None, tmp_path: Path, act: str, cause: str
) -> None:
    steps = scheduled(Telling(tmp_path / "note", act))
    with pytest.raises(JobFailed, match=rf"scheduler: .*{cause}"):
        list(steps)
