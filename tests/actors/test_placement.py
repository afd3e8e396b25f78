"""Runs that share a cluster."""

import threading

import pytest
from waiting import PATIENT_S

from actors import Needs


@pytest.mark.ray
def test_runs_that_share_a_cluster_wait_for_room(ray_session: None) -> None:
    """The session has four CPUs: two runs of two actors fit, a third and one of five do not; one alone always does."""
    from actors.placement import Budget, Demand

    def demand(cpus: int) -> Demand:
        return Demand({f"actor-{number}": Needs(1.0) for number in range(cpus)})

    def started(budget: Budget, cpus: int) -> threading.Event:
        """Set once a run that asks for so many has had them."""
        event = threading.Event()

        def run() -> None:
            with budget.spent(demand(cpus)):
                event.set()

        threading.Thread(target=run, daemon=True).start()
        return event

    budget = Budget()
    assert started(budget, 5).wait(PATIENT_S)
    with budget.spent(demand(2)):
        large = started(budget, 5)
        assert not large.wait(0.2)
        with budget.spent(demand(2)):
            small = started(budget, 1)
            assert not small.wait(0.2)
        assert small.wait(PATIENT_S)
        assert not large.is_set()
    assert large.wait(PATIENT_S)
    with Budget(1).spent(demand(1)):
        pass
    counted = Budget(2)
    with counted.spent(demand(5)):
        assert started(counted, 5).wait(PATIENT_S)
        with counted.spent(demand(5)):
            assert not started(counted, 0).wait(0.2)
