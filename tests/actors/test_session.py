"""Who gets the actors of a program that is over, and when they end."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from toys_jobs import DivideByZero, Pid, Processes, Sleep
from waiting import until

from actors import JobFailed, Needs

if TYPE_CHECKING:
    from actors.session import Session

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]


@pytest.fixture
def session() -> "Iterator[Session]":
    from actors.session import Session

    session = Session()
    yield session
    session.shutdown()


def hired(session: "Session", cpus: float = 0.0, **terms: Any) -> AbstractContextManager[Any]:
    """A workforce with a third worker that gets no job. cpus: what that one needs."""
    from actors.placement import Demand
    from actors.workforce import Terms

    demand = Demand({"one-0": Needs(), "two-0": Needs(), "idle-0": Needs(cpus=cpus)})
    return session.hired(Terms(demand, **terms))


def processes(session: "Session", program: Processes | None = None, cpus: float = 0.0, **terms: Any) -> tuple[int, ...]:
    """Runs a program on terms, and returns the processes of its scheduler and of two workers."""
    with hired(session, cpus, **terms) as workforce:
        (found,) = workforce.run(program or Processes(), f"test-{time.time_ns()}")
    return tuple(found)


def ended(pid: int) -> bool:
    """Waits until a process is gone."""
    until(lambda: not Path(f"/proc/{pid}").exists())
    return True


@pytest.mark.slow
def test_equal_terms_have_the_same_actors_and_others_new_ones_beside_them_while_there_is_room(
    session: "Session", ray_room: None
) -> None:
    first, second = processes(session), processes(session)
    assert len(set(first)) == 3 and first == second
    half = processes(session, cpus=7)
    assert not set(first) & set(half)
    assert processes(session) == first and processes(session, cpus=7) == half
    assert not set(half) & set(processes(session, cpus=2))
    assert all(map(ended, first + half))


@pytest.mark.slow
def test_those_that_wait_end_when_they_are_told_to_or_after_a_while(
    session: "Session", monkeypatch: pytest.MonkeyPatch
) -> None:
    first = processes(session)
    session.shutdown()
    assert all(map(ended, first))
    with session.held(), session.held():
        monkeypatch.setattr("actors.session.IDLE_S", 0.3)
        second = processes(session)
        time.sleep(1.0)
        assert processes(session) == second
    assert all(map(ended, second))
    third = processes(session)
    assert all(map(ended, third))


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.chaos
def test_an_actor_that_dies_in_between_is_replaced(session: "Session", place: int) -> None:
    """If it is the scheduler, so are its workers."""
    first = processes(session)
    os.kill(first[place], 9)
    assert ended(first[place])
    kept = set(first) & set(processes(session))
    assert kept == (set(first) - {first[1]} if place else set())


@pytest.mark.chaos
def test_a_worker_in_which_code_left_something_behind_is_replaced(session: "Session") -> None:
    first = processes(session, Processes(Pid("changed")))
    second = processes(session)
    assert set(first) - set(second) == {first[1]}


@pytest.mark.chaos
def test_after_a_failure_all_are_new(session: "Session") -> None:
    first = processes(session)
    with pytest.raises(JobFailed):
        processes(session, Processes(DivideByZero()))
    assert not set(first) & set(processes(session))


@pytest.mark.chaos
def test_after_an_interruption_those_are_left_that_are_soon_done(session: "Session") -> None:
    kept = []
    for seconds in (1.0, 600.0):
        first = processes(session)
        with (
            hired(session) as workforce,
            closing(workforce.run(Processes(Sleep(seconds)), f"test-{time.time_ns()}")) as steps,
        ):
            next(steps)
        kept.append(set(first) & set(processes(session)) == set(first))
    assert kept == [True, False]


@pytest.mark.slow
def test_programs_at_the_same_time_have_actors_of_their_own(session: "Session") -> None:
    found: list[tuple[int, ...]] = []
    threads = [threading.Thread(target=lambda: found.append(processes(session))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({pid for pids in found for pid in pids}) == 6
