"""APFL and FedALA, which mix a client's own model with the received one, and Port: by hand, and by identities."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from by_hand import x
from conftest import Raw, Simulate, digits, quadratic
from witness import Arrays, WitnessPool, execute

from raysim import ScenarioError, parse_scenario


def after(algorithm: Raw, rounds: int, folder: Path, **more: Any) -> tuple[float, list[Arrays]]:
    """The server's x, and the states of clients at 0 and 4, after rounds of steps of 1/2 from 1 on."""
    world, pool = {"dispatch": {"picks": [[0, 1]] * rounds}}, WitnessPool()
    raw = quadratic([0.0, 4.0], algorithm, world, rounds, start=1.0, local__lr=0.5, run__save_clients=True, **more)
    execute(raw, folder, pool)
    return float(pool.server_state["w"][0]), [state for _, state in sorted(pool.client_states.items())]


def test_apfl_by_hand(tmp_path: Path) -> None:
    """The received model goes 1, 0.5, 0.25 and 1, 2.5, 3.25; mixtures are at 1 and 0.625, and at 1 and 2.125, and own
    models move by a quarter of what these lack."""
    server, own = after({"name": "apfl", "alpha": 0.5}, 1, tmp_path, local__steps=2)
    assert server == pytest.approx(1.75)
    assert [float(state["v"][0]) for state in own] == pytest.approx([0.59375, 2.21875])


def test_an_adaptive_alpha_follows_its_gradient_within_its_bounds(tmp_path: Path) -> None:
    """In the second round v - w is -1.15625 and 0.46875, and mixtures are at 1.171875 and 1.984375."""
    adaptive = {"name": "apfl", "alpha": 0.5, "adaptive": True}
    _, own = after(adaptive, 2, tmp_path, local__steps=2)
    assert [float(state["alpha"]) for state in own] == pytest.approx([1.0, 0.5 + 0.5 * 0.46875 * 2.015625])


def test_clients_of_apfl_predict_with_the_mixture(simulate: Simulate) -> None:
    algorithm = {"name": "apfl", "alpha": 0.5}
    world = {"dispatch": {"picks": [[0, 1]]}}
    raw = quadratic([0.0, 4.0], algorithm, world, 1, start=1.0, local={"lr": 0.5, "batch_size": None, "steps": 2})
    mixed = simulate({**raw, "run": {"rounds": 1, "save_clients": True}}).clients()["w"]
    assert mixed.flatten().tolist() == pytest.approx([(0.59375 + 1.75) / 2, (2.21875 + 1.75) / 2])


def test_fedala_by_hand(tmp_path: Path) -> None:
    """1 goes to 0.5 and 2.5. From 1.5, with differences of 1 and -1 and gradients of 1.5 and -2.5, weights go from 1 to
    0.7 and 0.5, so that training starts at 1.2 and 2."""
    server, own = after({"name": "fedala", "weight_lr": 0.2}, 2, tmp_path)
    assert server == pytest.approx((0.6 + 3.0) / 2)
    assert [float(state["weights"][0]) for state in own] == pytest.approx([0.7, 0.5])
    assert [float(state["w"][0]) for state in own] == pytest.approx([0.6, 3.0])


def test_fedala_learns_weights_of_the_higher_layers_only(simulate: Simulate) -> None:
    model: Raw = {"name": "mlp", "hidden": [16], "personal": ["head"]}
    raw = digits(algorithm="fedala", model=model)
    whole = simulate(digits(algorithm="fedala")).vectors()["w"]
    assert not np.array_equal(simulate(raw).vectors()["w"], whole)


def constant(algorithm: Any) -> Raw:
    """Clients that always send 1, 2 and -1; the last one's update is three rounds late."""
    deltas: Raw = {"data__curvatures": [0.0] * 3, "data__slopes": [-1.0, -2.0, 1.0]}
    world = {
        "dispatch": {"picks": [[0, 1, 2], [], [], [0]]},
        "delay": {"name": "scripted", "delays": [[0.0, 0.0], [0.0], [3.0]]},
        "staleness": "rounds",
    }
    return quadratic([0.0] * 3, algorithm, world, 4, **deltas)


def test_port_by_hand(simulate: Simulate) -> None:
    """Fresh updates weigh alike. In the second step one counts 2, and the one against the last step 0 + 10 / 13."""
    assert x(simulate, constant({"name": "port", "buffer": 2})) == pytest.approx(1.5 + (26 - 10) / 36)


def test_port_counts_all_updates_as_similar_before_the_first_step(simulate: Simulate) -> None:
    """The first step has an update of 1 that is two rounds late and counts 1 + 10 / 12, and a fresh one of 2."""
    world = {
        "dispatch": {"picks": [[0], [], [1]]},
        "delay": {"name": "scripted", "delays": [[2.0], [0.0], [0.0]]},
        "staleness": "rounds",
    }
    raw = constant({"name": "port", "buffer": 2}) | {"world": world, "run": {"rounds": 3}}
    late, fresh = 1 + 10 / 12, 2.0
    assert x(simulate, raw) == pytest.approx((1 * late + 2 * fresh) / (late + fresh))


def test_apfl_asks_for_plain_steps() -> None:
    with pytest.raises(ScenarioError, match=r"local\.optimizer\.momentum: must be 0 for apfl"):
        parse_scenario(digits(algorithm="apfl", local__optimizer={"momentum": 0.9}))
