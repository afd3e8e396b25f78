"""FedIT, FLoRA and FlexLoRA: what becomes of clients' adapters, in bytes too, by hand and by dense matrices."""

from typing import Any

import numpy as np
import pytest
import torch
from by_hand import BOTH
from conftest import Raw, Simulate, computed, digits, quadratic
from pytest import approx
from toys_lora import Line
from witness import WitnessPool, execute

from raysim import ScenarioError, parse_scenario
from raysim.algorithms.flexlora import cut
from raysim.models import Lora
from raysim.models.build import initialise
from raysim.parts.rng import torch_seed
from raysim.workers.requests import TrainRequest

RATE = 0.25


def one_round(simulate: Simulate, algorithm: str, **lora: Any) -> dict[str, np.ndarray]:
    """Two clients with the losses x^2 / 2 and (x - 4)^2 / 2 take two steps from x = 0, where x = W + B A."""
    raw = quadratic([0.0, 4.0], algorithm, {"dispatch": BOTH["dispatch"]}, 1)
    raw["model"] = {"name": "toys_lora:Line", "lora": {"rank": 1, "alpha": 1.0, "targets": ["line"], **lora}}
    return simulate({**raw, "local": {"lr": RATE, "batch_size": None, "epochs": 2}}).vectors()


def factors(a: float) -> tuple[float, float]:
    """A and B of the client at 4, by hand: dA = B (x - 4), dB = A (x - 4). The other has no gradient, for B is zero."""
    b = RATE * a * 4
    return a + RATE * b * (4 - a * b), b + RATE * a * (4 - a * b)


def first_a() -> float:
    line = initialise(Line(lora=Lora(rank=1, targets=("line",))), (3,), 0, seed=0).line
    return float(line.lora_A["default"].weight.detach())


def renewed_a(client: int) -> float:
    draw = torch.rand(1, generator=torch.Generator().manual_seed(torch_seed(0, "own flora", client, 0)))
    return float(2 * draw - 1)


def test_fedit_averages_both_factors(simulate: Simulate) -> None:
    """Zhang et al., Towards building the federatedGPT: Federated instruction tuning, ICASSP 2024."""
    a, b = factors(first_a())
    assert one_round(simulate, "fedavg")["w"] == approx([(first_a() + a) / 2, b / 2], rel=1e-5)


def test_flexlora_averages_the_products(simulate: Simulate) -> None:
    a, b = factors(first_a())
    kept_a, kept_b = one_round(simulate, "flexlora")["w"]
    assert kept_a * kept_b == approx(a * b / 2, rel=1e-5)
    assert abs(kept_a) == approx(1)  # orthonormal rows: the singular value is in B


def test_flora_merges_the_products_of_new_adapters_into_the_base(simulate: Simulate) -> None:
    a, b = factors(renewed_a(1))
    vectors = one_round(simulate, "flora", merge=True)
    assert vectors["buffers"] == approx([a * b / 2], rel=1e-5)
    assert vectors["w"].tolist() == [approx(first_a()), 0.0]


def test_the_nearest_product_of_a_rank_has_the_largest_singular_values() -> None:
    left, right = torch.tensor([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    for rank, nearest in ((1, [[0, 3], [0, 0], [0, 0]]), (2, [[0, 3], [1, 0], [0, 0]])):
        a, b = cut(left, right, torch.zeros(rank, 2))
        torch.testing.assert_close(b @ a, torch.tensor(nearest, dtype=torch.float32))
        torch.testing.assert_close(a @ a.T, torch.eye(rank))


def test_rows_of_a_without_a_singular_value_stay_as_they_were() -> None:
    left, right, before = (
        torch.tensor([[3.0], [0.0]]),
        torch.tensor([[0.0, 1.0]]),
        torch.tensor([[5.0, 6.0], [7.0, 8.0]]),
    )
    a, b = cut(left, right, before)
    torch.testing.assert_close(b @ a[: b.shape[1]], torch.tensor([[0.0, 3.0], [0.0, 0.0]]))
    assert a[1].tolist() == [7.0, 8.0]


# --- ranks that differ ------------------------------------------------------------------------------------------------

WEAK: Raw = {"clients": [{"name": "weak", "members": [0, 1]}], "world": {"dispatch": {"picks": [[0, 2], [1, 3]]}}}
SIZE, HEAD = 64 + 16, 17 * 10  # numbers of an adapter for each rank, and of the head


def scenario(name: str, **more: Any) -> Raw:
    model = {"name": "mlp", "hidden": [16], "lora": {"rank": 3, "alpha": 6.0, "merge": name == "flora"}}
    raw = digits(algorithm={"name": name, "ranks": {"weak": 1}}, model=model, run__rounds=2, local__lr=0.5, **WEAK)
    return {**raw, "local": {"lr": 0.5, "epochs": 2}, **more}


class Trainings(WitnessPool):
    """Knows what clients sent, by client."""

    @property
    def sent(self) -> dict[int, np.ndarray]:
        found: dict[int, np.ndarray] = {}
        for request, job in self.seen:
            if isinstance(request, TrainRequest):
                vectors, _ = job.left.update.content
                found |= zip((member.client for member in request.members), vectors["w"], strict=True)
        return found


def matrices(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return w[: 3 * 64].reshape(3, 64), w[3 * 64 : 3 * SIZE].reshape(16, 3)


@pytest.mark.parametrize("name", ["flora", "flexlora"])
def test_a_step_sums_products_of_all_ranks(name: str, tmp_path: Any) -> None:
    """By dense matrices; and rows of A and columns of B beyond a client's rank stay zero."""
    pool = Trainings()
    result = execute(scenario(name), tmp_path, pool)
    samples = dict(result.pandas("updates").dropna(subset="up_bytes").set_index("client").samples)
    sums = []
    for weak, other in ((0, 2), (1, 3)):
        shares = np.array([samples[weak], samples[other]]) / (samples[weak] + samples[other])
        a, b = matrices(pool.sent[weak])
        assert a[0].any() and b[:, 0].any() and not a[1:].any() and not b[:, 1:].any()
        products = [b @ a for a, b in map(matrices, (pool.sent[weak], pool.sent[other]))]
        sums.append(sum(share * product for share, product in zip(shares, products, strict=True)))
    kept = result.vectors()
    a, b = matrices(kept["w"])
    if name == "flora":
        base = initialise(parse_scenario(scenario(name)).model, (1, 8, 8), 10, seed=0).hidden1.base_layer.weight
        moved = kept["buffers"].reshape(16, 64) - base.numpy()
        np.testing.assert_allclose(moved, 2 * (sums[0] + sums[1]), atol=1e-5)
        assert not b.any()
    else:
        u, sizes, v = np.linalg.svd(sums[1])
        np.testing.assert_allclose(b @ a, (u[:, :3] * sizes[:3]) @ v[:3], atol=1e-5)
        assert sizes[3] > 1e-3  # there was something to cut


@pytest.mark.parametrize(
    ("name", "down"),
    [
        ("flexlora", [SIZE + HEAD, 3 * SIZE + HEAD, SIZE + HEAD, 3 * SIZE + HEAD]),
        ("flora", [HEAD, HEAD, 4 * SIZE + HEAD, 4 * SIZE + HEAD]),  # the stack of the first round has ranks 1 + 3
    ],
)
def test_bytes_are_those_of_the_ranks(name: str, down: list[int], simulate: Simulate) -> None:
    updates = simulate(scenario(name)).pandas("updates").sort_values("dispatch")
    assert updates.down_bytes.tolist() == [4 * numbers for numbers in down]
    assert updates.up_bytes.tolist() == [4 * (SIZE + HEAD), 4 * (3 * SIZE + HEAD)] * 2


@pytest.mark.parametrize("name", ["flora", "flexlora"])
def test_computed_delays_count_the_same_bytes(name: str, simulate: Simulate) -> None:
    """Virtual time follows what travels, in a dry run and in one that continues from a checkpoint, too."""
    raw = scenario(name, world={**WEAK["world"], "delay": computed(1e6, 1000.0, 2000.0)})
    updates = simulate(raw).pandas("updates")
    seconds = updates.arrived_at - updates.dispatched_at - updates.up_bytes / 1000 - updates.down_bytes / 2000
    per_sample = seconds / updates.samples_seen
    np.testing.assert_allclose(per_sample, per_sample[0], rtol=1e-6)
    dry = simulate(raw, "--dry").pandas("updates")
    assert dry.arrived_at.tolist() == updates.arrived_at.tolist()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"algorithm": {"name": "flora", "ranks": {"week": 1}}}, "algorithm.ranks: must be the name of .*did you mean"),
        ({"algorithm": {"name": "flexlora", "ranks": {"weak": 4}}}, "algorithm.ranks.weak: must be at most .* 3, got"),
        ({"model": {"name": "mlp"}}, "model.lora: must be given for flora"),
        ({"model": {"name": "mlp", "lora": {"rank": 3}}}, "model.lora.merge: must be true for flora"),
        ({"algorithm": "fedavg"}, "model.lora.merge: must be false for fedavg"),
        ({"model": {"name": "mlp", "lora": {"dora": True, "merge": True}}}, "model.lora.dora: must be false"),
        (
            {"model": {"name": "mlp", "lora": {"merge": True}, "frozen": ["*lora_A*"]}},
            r"model.frozen: must be without '\*lora_A",
        ),
        ({"model": {"name": "mlp", "lora": {"rank": 0}}}, "model.lora.rank: must be .* 1"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_run(changes: Raw, text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        parse_scenario(scenario("flora", **changes))
