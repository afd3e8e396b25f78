"""ADMM with a server: FedADMM, FedADMM-In, FedADMM-InSa, by hand, by identities, and by their rate.

Client i minimises h_i / 2 |u - a_i|^2, so that a step of 1 / (h_i + beta) solves its subproblem.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, digits, override, quadratic
from plain_run import PlainRun
from witness import Arrays, WitnessPool, execute

from raysim import Result, ScenarioError, parse_scenario
from raysim.algorithms import Arrival

ALL_THREE = ["fedadmm", "fedadmm_in", "fedadmm_insa"]
NEVER = 1e-30  # of convexity: the fraction sigma is so small that no client stops early
SIGMA = 0.999 * math.sqrt(2) / (math.sqrt(2) + 1)  # where beta = c


def admm(centers: list[Any], algorithm: Any, rounds: int, local: Raw, **more: Any) -> Raw:
    """All clients take part in each round, from 0 on."""
    world = more.pop("world", {"dispatch": {"picks": [list(range(len(centers)))] * rounds}})
    return {**quadratic(centers, algorithm, world, rounds, **more), "local": {"batch_size": None, **local}}


def vector(result: Result) -> list[float]:
    values: list[float] = result.vectors()["w"].tolist()
    return values


def finished(raw: Raw, folder: Path) -> tuple[Arrays, list[Arrays], np.ndarray]:
    """A run's last states, of the server and of every client, and the clients' shares of all samples."""
    samples, pool = PlainRun(raw).federation.samples, WitnessPool()
    execute(override(raw, run__save_clients=True), folder, pool)
    clients = [state for _, state in sorted(pool.client_states.items())]
    return pool.server_state, clients, samples / samples.sum()


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rounds", "u", "dual"), [(1, [0.5, 1.5], [-0.5, -1.5]), (2, [1.25, 1.75], [0.25, -1.25])])
def test_exact_solves(tmp_path: Path, rounds: int, u: list[float], dual: list[float]) -> None:
    """z = 2 after both rounds."""
    server, clients, _ = finished(admm([1.0, 3.0], "fedadmm", rounds, {"lr": 0.5}), tmp_path)
    assert [float(client["u"][0]) for client in clients] == pytest.approx(u, abs=1e-6)
    assert [float(client["dual"][0]) for client in clients] == pytest.approx(dual, abs=1e-6)
    assert server["w"] == pytest.approx([2.0], abs=1e-6)


@pytest.mark.parametrize("algorithm", ["fedadmm_in", "fedadmm_insa"])
@pytest.mark.parametrize(("memory", "expected"), [(0.25, 1.6), (0.0, 2.0), (None, 2 / 1.01)])
def test_the_server_remembers_its_last_model(
    simulate: Simulate, algorithm: str, memory: float | None, expected: float
) -> None:
    block = {"name": algorithm} if memory is None else {"name": algorithm, "memory": memory}
    assert vector(simulate(admm([1.0, 3.0], block, 1, {"lr": 0.5}))) == pytest.approx([expected], abs=1e-6)


def test_samples_and_penalties_weigh() -> None:
    """alpha = (1/4, 3/4), beta = (1, 2): u = (0.5, 1), lambda = (-0.5, -2), z = 3.25 / 1.75."""
    block = {"name": "fedadmm_insa", "convexity": NEVER, "memory": 0.0}
    plain = PlainRun(admm([1.0, 3.0], block, 1, {"lr": 0.25, "steps": 60}, data__samples=[1, 3]))
    updates = []
    for client, state in enumerate(plain.clients):
        state = {**state, "beta": torch.tensor([1.0, 2.0][client])}
        update, after = plain.algorithm.update(plain.task(client, plain.message), plain.message, state)
        assert float(after["u"]) == pytest.approx([0.5, 1.0][client], abs=1e-6)
        assert float(after["dual"]) == pytest.approx([-0.5, -2.0][client], abs=1e-6)
        updates.append(update)
    plain.step([Arrival(client, client, 0, 0, 0.0, samples) for client, samples in enumerate((1, 3))], updates)
    assert float(plain.server["scale"]) == 1.75
    assert float(plain.server["w"]) == pytest.approx(3.25 / 1.75, abs=1e-6)


@pytest.mark.parametrize(("aggregate", "expected"), [("all", 2.25), ("selected", 3.0)])
@pytest.mark.parametrize("algorithm", ALL_THREE)
def test_clients_that_are_not_selected_count_or_not(
    simulate: Simulate, algorithm: str, aggregate: str, expected: float
) -> None:
    """Client 1 of n = (1, 3) alone: u = 1.5, lambda = -1.5; client 0 still has u = lambda = 0."""
    block = {"name": algorithm, "aggregate": aggregate} | ({} if algorithm == "fedadmm" else {"memory": 0.0})
    alone = {"dispatch": {"picks": [[1]]}}
    raw = admm([1.0, 3.0], block, 1, {"lr": 0.5}, world=alone, data__samples=[1, 3])
    assert vector(simulate(raw)) == pytest.approx([expected], abs=1e-6)


# --- the inexactness criterion ----------------------------------------------------------------------------------------


def test_clients_stop_when_the_residual_has_fallen_to_sigma(simulate: Simulate) -> None:
    """By 0.8, 0.64, 0.512 of what it was; sigma = 0.5852: three steps, u_0 = 0.244, and z = 2 u_0."""
    block = {"name": "fedadmm_in", "memory": 0.0}
    result = simulate(admm([1.0], block, 1, {"lr": 0.1, "steps": 100}))
    (row,) = result.table("updates").to_pylist()
    assert row["local_steps"] == 3
    assert (row["residual"], row["tolerance"]) == pytest.approx((0.512, SIGMA), abs=1e-6)
    assert pytest.approx(0.58520, abs=5e-6) == SIGMA
    assert row["loss_after"] == pytest.approx((1 - 0.244) ** 2 / 2, abs=1e-6)
    assert vector(result) == pytest.approx([0.488], abs=1e-6)


@pytest.mark.parametrize(("convexity", "sigma"), [(1.0, 0.5), ("beta", SIGMA), (0.02, 2**0.5 / (2**0.5 + 10))])
def test_sigma_follows_the_penalty_and_the_convexity(simulate: Simulate, convexity: Any, sigma: float) -> None:
    """beta = 2, where the residual is 1 at first."""
    block = {"name": "fedadmm_in", "beta": 2.0, "convexity": convexity}
    (row,) = simulate(admm([1.0], block, 1, {"lr": 0.1})).table("updates").to_pylist()
    assert row["tolerance"] == pytest.approx(sigma if convexity == "beta" else 0.999 * sigma, abs=1e-6)
    assert row["penalty"] == 2.0


@pytest.mark.parametrize(
    ("start", "residual", "tolerance", "steps"),
    [
        ("received", "received", 0.15 * SIGMA, 1),
        ("own", "received", 0.15 * SIGMA, 1),
        ("received", "own", 0.45 * SIGMA, 0),  # the received z is near enough already
        ("own", "own", 0.45 * SIGMA, 1),
    ],
)
def test_where_clients_start_and_what_they_compare_with(
    simulate: Simulate, start: str, residual: str, tolerance: float, steps: int
) -> None:
    """beta = 3: u = 0.25, lambda = -0.75, z = 0.4; then e(u) = 4 u - 1.45: 0.15 at z and -0.45 at the last u."""
    choice = {"start": start, "residual": residual}
    block = {"name": "fedadmm_in", "beta": 3.0, "convexity": "beta", "memory": 0.25, **choice}
    result = simulate(admm([1.0], block, 2, {"lr": 0.25, "steps": 9}))
    first, second = result.table("updates").to_pylist()
    assert (first["tolerance"], first["local_steps"]) == (pytest.approx(SIGMA, abs=1e-6), 1)
    assert (second["tolerance"], second["local_steps"]) == (pytest.approx(tolerance, abs=1e-6), steps)
    assert second["residual"] == pytest.approx(0 if steps else 0.15, abs=1e-6)
    # A solve makes u = 0.3625 and lambda = -0.6375; without a step u = z and lambda stays.
    assert vector(result) == pytest.approx([0.54 if steps else 0.6], abs=1e-6)


@pytest.mark.parametrize("algorithm", ["fedadmm_in", "fedadmm_insa"])
def test_with_mini_batches_whole_epochs_are_done(simulate: Simulate, algorithm: str) -> None:
    local = {"lr": 0.02, "batch_size": 16, "epochs": 6}
    updates = simulate(digits(algorithm=algorithm, local=local)).pandas("updates").query("status == 'used'")
    epochs = updates.local_steps / -(-updates.samples // 16)
    assert (epochs == epochs.round()).all()
    assert epochs.between(1, 6).all() and epochs.nunique() > 2
    assert (updates.residual <= updates.tolerance)[epochs < 6].all()
    assert (updates.residual > updates.tolerance)[epochs == 6].any()


# --- the adaptive penalty ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("beta", "adapted"), [(1.0, 1.0), (10.0, 5.0), (0.1, 0.2)])
@pytest.mark.parametrize("steps", [1, 7])
def test_the_penalty_adapts(simulate: Simulate, beta: float, adapted: float, steps: int) -> None:
    """In the first round p = beta d, however well subproblems are solved; the new penalty is used from the next on."""
    block = {"name": "fedadmm_insa", "beta": beta, "convexity": NEVER}
    updates = simulate(admm([1.0, 3.0], block, 2, {"lr": 0.05, "steps": steps})).pandas("updates")
    assert updates.penalty.tolist() == pytest.approx([beta, beta, adapted, adapted])


def test_an_adapted_penalty_enters_duals_and_sums(simulate: Simulate) -> None:
    """beta = 10, then 5: u = 1/11, lambda = -10/11, z = 2/11; u = (1 - 10/11 + 10/11) / 6, lambda less 5 (u - z)."""
    block = {"name": "fedadmm_insa", "beta": 10.0, "convexity": NEVER, "memory": 0.0}
    u, z = 1 / 6, 2 / 11
    dual = -10 / 11 - 5 * (u - z)
    got = vector(simulate(admm([1.0], block, 2, {"lr": 0.1, "steps": 60})))
    assert got == pytest.approx([u - dual / 5], abs=1e-6)


@pytest.mark.parametrize(("penalties", "z"), [("last", 48.5 / 121), ("current", 61 / 121)])
def test_a_client_that_is_not_selected_counts_with_its_last_or_its_current_penalty(
    simulate: Simulate, penalties: str, z: float
) -> None:
    """Client 0: u = 1/11, lambda = -10/11, beta 10, then 5. Client 1, from z = 1/11: u = 43/121, lambda = -320/121.

    z is the mean of (10 + 10) / 11 or (5 + 10) / 11 and of 750 / 121, over the mean of 10 or 5 and of 10.
    """
    block = {"name": "fedadmm_insa", "beta": 10.0, "convexity": NEVER, "memory": 0.0, "penalties": penalties}
    world = {"dispatch": {"picks": [[0], [1]]}}
    result = simulate(admm([1.0, 3.0], block, 2, {"lr": 1 / 11, "steps": 60}, world=world))
    assert vector(result) == pytest.approx([z], abs=1e-6)
    assert result.pandas("updates").next_penalty.tolist() == [5.0, 5.0]


def test_only_a_server_that_counts_all_clients_can_use_their_current_penalties() -> None:
    block = {"name": "fedadmm_insa", "aggregate": "selected", "penalties": "current"}
    with pytest.raises(ScenarioError, match="penalties must be last with `aggregate: selected`"):
        parse_scenario(digits(algorithm=block))


# --- sums, bytes, rates -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "penalties"),
    [("fedadmm", None), ("fedadmm_in", None), ("fedadmm_insa", "last"), ("fedadmm_insa", "current")],
)
def test_the_servers_sums_are_those_over_the_clients(tmp_path: Path, algorithm: str, penalties: str | None) -> None:
    """After 40 rounds in which most updates are late; some clients never take part."""
    world = {"dispatch": {"per_round": 6}, "delay": {"name": "half_normal", "sigma": 4}}
    block = {"name": algorithm, "beta": 0.5} | ({"penalties": penalties} if penalties else {})
    raw = digits(algorithm=block, world=world, run__rounds=40, data__clients=100)
    server, clients, shares = finished(raw, tmp_path)
    fresh = sum(not client["dual"].any() for client in clients)
    assert 0 < fresh < 60
    betas = [float(client.get("beta" if penalties == "current" else "last", 0.5)) for client in clients]
    pairs = list(zip(betas, clients, shares, strict=True))
    term = sum(share * (beta * client["u"].astype(float) - client["dual"]) for beta, client, share in pairs)
    assert np.linalg.norm(server["term"] - term) < 1e-5 * np.linalg.norm(term)
    if algorithm == "fedadmm_insa":
        assert len(set(betas)) > 2
        assert server["scale"] == pytest.approx(shares @ betas, rel=1e-5)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"name": "fedadmm", "beta": 0}, "algorithm.beta: must be greater than 0, got 0"),
        (
            {"name": "fedadmm", "memory": 0.1},
            "algorithm.memory: unknown key (a key of fedadmm_in, fedadmm_insa); known here: name, beta",
        ),
        ({"name": "fedadmm_in", "convexity": "lr"}, "algorithm.convexity: must be a number, got 'lr', or must be"),
        ({"name": "fedadmm_in", "residual": "z"}, "algorithm.residual: must be 'received' or 'own', got 'z'"),
        ({"name": "fedadmm_insa", "mu": 0.5}, "algorithm.mu: must be greater than or equal to 1, got 0.5"),
    ],
)
def test_what_cannot_be_is_said(block: Raw, expected: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(digits(algorithm=block))
    assert expected in str(caught.value)
