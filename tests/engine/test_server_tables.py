"""What tables say of a timeline with a server."""

import pytest
from conftest import Raw, Simulate, computed, digits, quadratic


def test_tables_of_a_world_without_rounds(simulate: Simulate) -> None:
    """Every server step counts as a round: step k + 1 closes round k, and is evaluated when it is due, or the last."""
    delay = {"name": "log_normal", "median": 10.0, "sigma": 1.0, "unit": "seconds"}
    raw = digits(world={"dispatch": {"concurrency": 6}, "delay": delay}, run={"rounds": 7, "evaluate_every": 3})
    result = simulate({**raw, "algorithm": {"name": "fedbuff", "buffer": 4}})
    steps, updates, evaluations = (result.pandas(table) for table in ("steps", "updates", "evaluations"))
    assert steps.step.tolist() == list(range(1, 8))
    assert steps["round"].tolist() == list(range(7))
    assert (steps.used == 4).all()
    assert (steps.in_flight == 5).all()
    assert steps.virtual_time.is_monotonic_increasing
    used, unfinished = updates[updates.status == "used"], updates[updates.status == "unfinished"]
    assert len(used) == 28
    assert (used.virtual_time == used.step.map(steps.set_index("step").virtual_time)).all()
    assert (used.staleness == used.step - 1 - used.version).all()
    assert (used.arrived_at <= used.virtual_time).all()
    assert (unfinished.step == 7).all()
    assert evaluations[evaluations.metric == "accuracy"].step.tolist() == [3, 6, 7]
    assert evaluations[evaluations.metric == "accuracy"]["round"].tolist() == [2, 5, 6]
    totals = {"used": 28, "discarded": 0, "dropped": 0, "unfinished": len(unfinished), "steps": 7, "rounds": 7}
    totals |= {"dispatched": 28 + len(unfinished), "virtual_time": steps.virtual_time.max()}
    assert result.info["totals"] == totals


def test_every_arrival_steps_where_the_buffer_is_one(simulate: Simulate) -> None:
    seconds = {"name": "exponential", "mean": 3.0, "unit": "seconds"}
    world = {"dispatch": {"concurrency": 3}, "delay": seconds}
    result = simulate(quadratic([1.0] * 5, "fedasync", world, 12, run__evaluate_every=1))
    steps, evaluations = result.pandas("steps"), result.pandas("evaluations")
    used = result.pandas("updates").query("status == 'used'")
    assert steps.used.tolist() == [1] * 12
    assert steps.in_flight.tolist() == [2] * 12
    assert used.arrived_at.tolist() == used.virtual_time.tolist() == steps.virtual_time.tolist()
    assert (used.staleness == used.step - 1 - used.version).all()
    assert evaluations.step.tolist() == steps.step.tolist()
    assert evaluations.virtual_time.tolist() == steps.virtual_time.tolist()


def test_a_run_that_loses_all_its_clients_is_evaluated_at_its_end(simulate: Simulate) -> None:
    """It counts the rounds that it came to, and a dry run says the same."""
    seconds = {"name": "constant", "value": 1.0, "unit": "seconds"}
    dropout = {"probability": 0.3, "permanent": True}
    world = {"dispatch": {"concurrency": 2}, "delay": seconds, "dropout": dropout}
    raw = quadratic([1.0] * 6, "fedasync", world, 1000, run__evaluate_every=1000)
    result, dry = simulate(raw), simulate(raw, "--dry")
    totals = result.info["totals"]
    assert totals["dropped"] == 6
    assert 0 < totals["rounds"] == totals["steps"] < 1000
    assert result.pandas("evaluations").step.tolist() == [totals["steps"]]
    assert dry.info["totals"] == totals
    assert dry.info["ended_early"] == "no client is left to pick"


SHARED, HEAD = 64 * 16 + 16, 16 * 10 + 10  # parameters of the model of `digits`


@pytest.mark.parametrize(
    ("algorithm", "personal", "elements"),
    [
        ("fedavg", [], SHARED + HEAD),
        ("scaffold", [], 2 * (SHARED + HEAD)),  # clients also send control variates
        ("fedper", ["head"], SHARED),
        ("local_only", [], 0),
    ],
)
def test_a_server_that_only_sums_computes_twice_what_clients_send(
    simulate: Simulate, algorithm: str, personal: list[str], elements: int
) -> None:
    """An addition and a product for each element of each update."""
    world = {"dispatch": {"per_round": 6}}
    result = simulate(digits(algorithm=algorithm, model__personal=personal, world=world, run__rounds=2))
    steps = result.pandas("steps")
    assert steps.up_bytes.tolist() == [6 * 4 * elements] * 2
    assert steps.server_flops.tolist() == [6 * 2 * elements] * 2


@pytest.mark.parametrize(("buffers", "elements"), [(False, 1), (True, 1 + 2 * 6)])
def test_a_model_that_is_not_sent_is_not_downloaded(simulate: Simulate, buffers: bool, elements: int) -> None:
    """The number is; so are a mean and a variance of 6 channels, if the algorithm sends them."""
    algorithm = {"name": "toys:Hinted", "buffers": buffers}
    model = {"name": "module", "module": "own_modules:Net"}
    result = simulate(digits(algorithm=algorithm, model=model, world={"dispatch": {"per_round": 6}}, run__rounds=2))
    assert set(result.pandas("updates").down_bytes) == {4 * elements}
    assert result.pandas("steps").down_bytes.tolist() == [6 * 4 * elements] * 2


def test_updates_are_compared_with_their_mean(simulate: Simulate) -> None:
    """Two clients go 3 and 4 along an axis each, and have as many samples: their mean is (1.5, 2)."""
    world = {"dispatch": {"per_round": 2}}
    raw = quadratic([[3.0, 0.0], [0.0, 4.0]], "fedavg", world, 1, run__compare_updates=True)
    updates = simulate(raw).pandas("updates").sort_values("client")
    assert updates.update_norm.tolist() == pytest.approx([3.0, 4.0])
    assert updates.update_cosine.tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("algorithm", ["fedavg", "fedbuff", "ca2fl", {"name": "fedadmm_in", "convexity": 5.0}])
def test_comparing_updates_changes_no_bit(simulate: Simulate, algorithm: Raw | str) -> None:
    """Though the server then sums them instead of the clients' workers; also where arrivals follow the work done."""
    world = {"dispatch": {"per_round": 6}, "delay": {"name": "half_normal", "sigma": 1}}
    if isinstance(algorithm, dict):
        world = {"dispatch": {"per_round": 6}, "delay": computed(2e6, 2e6, 2e6)}
    plain, compared = (
        simulate(digits(algorithm=algorithm, world=world, run__rounds=3, run__compare_updates=asked))
        for asked in (False, True)
    )
    assert plain.info["digest"]["model"] == compared.info["digest"]["model"]
    shown = compared.pandas("updates").query("status == 'used'")
    if algorithm in ("fedavg", "fedbuff"):
        assert shown.update_cosine.between(-1.001, 1.001).all()
    else:
        assert "update_cosine" not in shown
