"""The algorithms without a server, against numbers that can be followed with pencil and paper, and their laws."""

from typing import Any

import pytest
from conftest import Raw, Simulate, digits
from peers_runs import GOSSIP

HALF = {"name": "neighbours", "beta": 0.5}
APART = {"name": "neighbours", "beta": 0.0}  # messages come, and weigh nothing


def vectors(centers: list[float], algorithm: Any, rounds: int, topology: Any, start: float = 0.0, **local: Any) -> Raw:
    """Peers that minimise |x - a|^2 / 2 by full-batch steps."""
    return {
        "name": "paper",
        "data": {"name": "quadratic", "centers": centers},
        "model": {"name": "vector", "start": start},
        "algorithm": algorithm,
        "topology": topology,
        "local": {"lr": 1.0, "batch_size": None, **local},
        "run": {"rounds": rounds},
    }


def final(simulate: Simulate, raw: Raw) -> list[float]:
    """The peers' last x."""
    w: list[float] = simulate(raw).vectors()["w"][:, 0].tolist()
    return w


# --- parameters: a step with lr 1 from anywhere leads to the centre ---------------------------------------------------


QUARTER = {"name": "neighbours", "beta": 0.25}
PROX: Raw = {"name": "decfedprox", "alpha": 0.25}
ADMM: Raw = {"name": "dfedadmm", "penalty": 1.0}
UPHILL: Raw = {"gradients": [{"name": "sam", "radius": 0.5}]}


def on_a_ring(algorithm: Any, rounds: int, start: float, weights: Any = None, **local: Any) -> Raw:
    """Two peers with x^2 / 2 and (x - 4)^2 / 2, whose steps are 0.5."""
    topology = {"name": "ring", "weights": weights} if weights else "ring"
    return vectors([0.0, 4.0], algorithm, rounds, topology, start, **{"lr": 0.5, **local})


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        # Three peers, all connected, trained to 0, 3, 6: 0 / 2 + (3 + 6) / 4 and so on.
        (vectors([0.0, 3.0, 6.0], "decfedavg", 1, {"name": "complete", "weights": HALF}), [2.25, 3.0, 3.75]),
        # As D-PSGD to 0.5 and 2.5, then to 1.25 and 2.25; corrections of 0.5 and -0.5 join 1.75 - 0.625 and 1.75 +
        # 0.875.
        (on_a_ring("extra", 1, 1.0, steps=1), [0.5, 2.5]),
        (on_a_ring("extra", 2, 1.0, steps=1), [1.25, 2.25]),
        (on_a_ring("extra", 3, 1.0, steps=1), [1.625, 2.125]),
        # Adapted to 0.5 and 2.5, combined to 1 and 2; adapted to 0.5 and 3, corrected by 0.5 and -0.5, and combined.
        (on_a_ring("exact_diffusion", 1, 1.0, steps=1), [1.0, 2.0]),
        (on_a_ring("exact_diffusion", 2, 1.0, steps=1), [1.375, 2.125]),
        # In rounds: 0.5 and 2.5, then the mean, 1.5, less 0.25 and plus 0.75.
        (on_a_ring({"name": "swift", "every": 2}, 1, 1.0, steps=1), [0.5, 2.5]),
        (on_a_ring({"name": "swift", "every": 2}, 2, 1.0, steps=1), [1.25, 2.25]),
        # From 2 to 1 and 3, because the pull is to 2 at first; there each gradient, 1, meets a pull of 2 * 0.25 * 2.
        (on_a_ring(PROX, 1, 2.0, APART), [1.0, 3.0]),
        (on_a_ring(PROX, 2, 2.0, APART), [1.0, 3.0]),
        # Towards models as they were sent: trained to 1 and 3, mixed to 1.5 and 2.5; then 1.5 with a pull of 0.5 (1.5 -
        # 3) trains to 1.125, and so on.
        (on_a_ring(PROX, 2, 2.0, QUARTER), [0.75 * 1.125 + 0.25 * 2.875, 0.75 * 2.875 + 0.25 * 1.125]),
        # Where nobody is heard, from 2 to 1 and 3, and still pulled to 2: by 2 * 0.25 * 1, half the gradient.
        ({**on_a_ring(PROX, 2, 2.0), "world": {"loss": 1.0}}, [0.75, 3.25]),
        # Momentum starts anew every round: from 2 to 1.5, to 1.5 - 0.25 + 0.5 (1.5 - 2) = 1, where it stays.
        *(
            (vectors([1.0, 1.0], {"name": "dfedavgm", "momentum": 0.5}, n, "ring", 2.0, lr=0.5, steps=2), [1.0, 1.0])
            for n in (1, 2)
        ),
        # From 1 to 0.5 and 2.5, with duals 0.5 and -1.5, sent 0 and 4; then 1.25 and 2.25, sent 0 and 4 again.
        (on_a_ring(ADMM, 1, 1.0), [2.0, 2.0]),
        (on_a_ring(ADMM, 2, 1.0), [2.0, 2.0]),
        (on_a_ring({**ADMM, "mix_corrected": False}, 1, 1.0), [1.5, 1.5]),
        # Apart and uncorrected: from 1 to 0.5 and 2.5, where the duals, 0.5 and -1.5, meet gradients as large.
        (on_a_ring({**ADMM, "mix_corrected": False}, 2, 1.0, APART), [0.5, 2.5]),
        # Apart, from 1: gradients 1.5 and -3.5 at 1.5 and 0.5 lead to 0.25 and 2.75. Duals are 0.75 and -1.75, sent are
        # -0.5 and 4.5. Then -1 at -1, less the dual, to 0.375; 1 at 5, to 3.125; duals -0.125 and -0.375.
        (on_a_ring(ADMM, 1, 1.0, APART, **UPHILL), [-0.5, 4.5]),
        (on_a_ring(ADMM, 2, 1.0, APART, **UPHILL), [0.5, 3.5]),
    ],
)
def test_by_hand(simulate: Simulate, raw: Raw, wanted: list[float]) -> None:
    assert final(simulate, raw) == pytest.approx(wanted, abs=1e-6)


def test_d_psgd_takes_the_gradient_before_mixing_and_decfedavg_the_mean_after_training(simulate: Simulate) -> None:
    """x^2 / 2 and (x - 4)^2 / 2, step 0.5. D-PSGD: 0 and 2, then 1 - 0 and 1 + 1. Else: 1, then 0.5 and 2.5 mixed."""
    for rounds, combined, adapted in ((1, [0.0, 2.0], [1.0, 1.0]), (2, [1.0, 2.0], [1.5, 1.5])):
        for name in ("d_psgd", "cdsgd"):
            raw = vectors([0.0, 4.0], name, rounds, {"name": "ring", "weights": "metropolis"}, lr=0.5, steps=1)
            assert final(simulate, raw) == combined
        raw = vectors([0.0, 4.0], "decfedavg", rounds, {"name": "ring", "weights": "metropolis"}, lr=0.5)
        assert final(simulate, raw) == adapted


@pytest.mark.parametrize(("name", "gap"), [("extra", 0.0), ("exact_diffusion", 0.0), ("dsgt", 0.0), ("d_psgd", 0.05)])
def test_corrections_leave_no_gap_at_a_constant_rate(simulate: Simulate, name: str, gap: float) -> None:
    """x^2 / 2, (x - 1)^2 and (x - 4)^2 / 2 on a line have their optimum at 6 / 4."""
    raw = vectors([0.0, 1.0, 4.0], name, 300, "line", 1.0, lr=0.1, steps=1)
    raw["data"]["curvatures"] = [1.0, 2.0, 1.0]
    apart = max(abs(x - 1.5) for x in final(simulate, raw))
    assert apart > gap if gap else apart < 1e-4


def pairs(delays: list[list[float]], **more: Any) -> Raw:
    delay = {"name": "scripted", "unit": "seconds", "delays": delays}
    return {"world": {"synchronous": False, "delay": delay}, **more}


def test_ad_psgd_adds_steps_to_means_of_two(simulate: Simulate) -> None:
    """x^2 / 2 and (x - 4)^2 / 2, step 0.5, from 1. At 1 s peer 0 asks, and steps from 1 to 0.5. At 2 s peer 1 asks,
    with a gradient of -3 at 1: both have 0.75, and it steps to 2.25. At 3 s peer 0, which read 0.5: 1.5, less 0.25. At
    4 s peer 1, which read 2.25: 1.375, plus 0.875."""
    for rounds, wanted in ((1, [0.75, 2.25]), (2, [1.375, 2.25])):
        raw = vectors([0.0, 4.0], "ad_psgd", rounds, "line", 1.0, lr=0.5, steps=1)
        assert final(simulate, raw | pairs([[1.0, 2.0, 9.0], [2.0, 2.0, 9.0]])) == wanted


def test_ad_psgd_steps_by_gradients_of_models_that_it_read_before(simulate: Simulate) -> None:
    """From 1, 3 and 4 on a line: peer 2 is where it wants to be, and asks 1, which makes 3.5. Peer 0, whose gradient is
    1, asks 1: 2.25, of which it keeps 2.15. Peer 2, which read 3.5, asks again: 2.875, plus 0.05."""
    algorithm = {"name": "toys_peers:Apart", "starts": [1.0, 3.0, 4.0]}
    raw = vectors([0.0, 1.0, 4.0], algorithm, 1, "line", lr=0.1, steps=1)
    raw["data"]["curvatures"] = [1.0, 2.0, 1.0]
    raw |= pairs([[2.0, 90.0], [99.0, 9.0], [1.0, 9.0, 9.0]])
    assert final(simulate, raw) == pytest.approx([2.15, 2.875, 2.925])


def test_swift_sends_a_model_before_it_trains(simulate: Simulate) -> None:
    """x^2 / 2 and (x - 4)^2 / 2, step 0.5, weights 1/2, from 1. Peer 0 trains for 1 s, peer 1 for 1.5 s, and both have
    each other's 1 at once: 0.5 at 1 s. At 1.5 s, peer 1 has that: 0.75 + 1.5 = 2.25. At 2 s, peer 0, which trained
    from 0.5, has 2.25: 1.375 - 0.25. At 3 s, peer 1, which trained from 2.25, has that."""
    delays = [[1.0, 1.0, 9.0], [1.5, 1.5, 9.0]]
    for rounds, wanted in ((1, [0.5, 2.25]), (2, [1.125, 1.6875 + 0.875])):
        raw = vectors([0.0, 4.0], "swift", rounds, "line", 1.0, lr=0.5, steps=1)
        assert final(simulate, raw | pairs(delays)) == wanted


def test_exchanges_in_pairs_keep_the_mean(simulate: Simulate) -> None:
    raw = vectors([1.0, 2.0, 3.0, 4.0, 5.0, 9.0], "toys_peers:Apart", 60, "ring")
    result = final(simulate, raw | {"world": GOSSIP})
    assert result == pytest.approx([4.0] * 6, rel=1e-4) and sum(result) == pytest.approx(24.0, rel=1e-6)


# --- all of them ------------------------------------------------------------------------------------------------------


def scenario_of(name: str, **more: Any) -> Raw:
    usual = {"algorithm": name, "topology": "ring", "public": {"samples": 40}, "data__clients": 6, "run__rounds": 3}
    raw = digits(**{**usual, **more})
    del raw["world"]
    if name in ("d_psgd", "dsgt"):
        raw["local"]["steps"] = 1
    return raw


@pytest.mark.parametrize("name", ["cmfd", "fedf_admm"])
def test_sharing_outputs_or_parameters_gives_the_same_models_for_different_bytes(simulate: Simulate, name: str) -> None:
    results = [
        simulate(scenario_of(name, algorithm={"name": name, "share": share})) for share in ("outputs", "parameters")
    ]
    assert results[0].info["digest"]["model"] == results[1].info["digest"]["model"]
    sizes = [set(result.pandas("exchanges").bytes) for result in results]
    assert sizes == [{4 * 10 * 40}, {4 * (65 * 16 + 17 * 10)}]


def test_outputs_on_1000_inputs_are_40000_bytes_an_edge(simulate: Simulate) -> None:
    raw = scenario_of("fedf_admm", data__clients=10, public={"samples": 1000}, run__rounds=1)
    exchanges = simulate(raw).pandas("exchanges")
    assert exchanges.bytes.tolist() == [40_000] * 20
