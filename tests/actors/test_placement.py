"""Runs that share a cluster."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from waiting import PATIENT_S

from actors import MissingResources, Needs

if TYPE_CHECKING:
    from actors.placement import Demand
    from actors.session import Budget


def demand(cpus: int) -> "Demand":
    from actors.placement import Demand

    return Demand({f"actor-{number}": Needs(1.0) for number in range(cpus)})


def started(budget: "Budget", cpus: int) -> threading.Event:
    """Set once a run that asks for so many has had them."""
    event = threading.Event()
    threading.Thread(target=budget.spend, args=(demand(cpus), event.set), daemon=True).start()
    return event


@contextmanager
def spent(budget: "Budget", asked: "Demand") -> Iterator[None]:
    """A run that goes on for as long as the block."""
    begun, over = threading.Event(), threading.Event()

    def run() -> None:
        begun.set()
        over.wait(2 * PATIENT_S)

    threading.Thread(target=budget.spend, args=(asked, run), daemon=True).start()
    assert begun.wait(PATIENT_S)
    try:
        yield
    finally:
        over.set()


@pytest.mark.ray
def test_runs_that_share_a_cluster_wait_for_room(ray_room: None) -> None:
    """The session has eight CPUs: two runs of four actors fit, a third and one of nine do not; one alone does."""
    from actors.session import Budget

    budget = Budget()
    assert started(budget, 9).wait(PATIENT_S)
    with spent(budget, demand(4)):
        large = started(budget, 9)
        assert not large.wait(0.2)
        with spent(budget, demand(4)):
            small = started(budget, 1)
            assert not small.wait(0.2)
        assert small.wait(PATIENT_S)
        assert not large.is_set()
    assert large.wait(PATIENT_S)


@pytest.mark.ray
def test_no_more_runs_than_asked_for_go_on_and_only_where_there_is_room(ray_room: None) -> None:
    from actors.session import Budget

    one, two = Budget(1), Budget(2)
    with spent(one, demand(1)):
        assert not started(one, 1).wait(0.2)
    with spent(two, demand(2)):
        assert not started(two, 7).wait(0.2)


@pytest.mark.ray
def test_a_run_whose_room_another_has_taken_follows_it(ray_room: None) -> None:
    from actors.session import Budget

    budget, attempts, failed, done = Budget(2), [], threading.Event(), threading.Event()

    def run() -> None:
        attempts.append(None)
        if len(attempts) == 1:
            failed.set()
            raise MissingResources("taken")
        done.set()

    with spent(budget, demand(1)):
        threading.Thread(target=budget.spend, args=(demand(1), run), daemon=True).start()
        assert failed.wait(PATIENT_S) and not done.wait(0.2)
    assert done.wait(PATIENT_S)
    attempts.clear()
    with pytest.raises(MissingResources):  # nobody else can have taken it
        budget.spend(demand(1), run)
