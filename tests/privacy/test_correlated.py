"""Noise of trees and matrices: by hand, how far a client can move it, and the same bits when a run goes on."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, digits, quadratic
from pytest import approx

from raysim.laws.runs import PicklingPool, carried_out
from raysim.privacy.matrix import MatrixRelease
from raysim.privacy.release import Normal, Release, TreeRelease
from raysim.terms import Record, Tensor

CORRELATED = digits(
    algorithm={"name": "fedbuff", "buffer": 3, "staleness": "none"},
    uplink=[{"name": "clip_norm", "max": 0.5}],
    privacy={"delta": 1e-5},
)
RELEASES: dict[str, Raw] = {
    "tree": {"name": "tree"},
    "restart": {"name": "tree", "restart": 3, "efficient": False},
    "root": {"name": "matrix"},
    "banded": {"name": "matrix", "strategy": "banded", "bands": 4},
    "blt": {"name": "matrix", "strategy": "blt", "separation": 1},
}


def added(release: Release, steps: int, of: dict[tuple[int, ...], float] | float) -> list[float]:
    """What a release adds to each step, for given normal numbers by key."""
    kept: Record = {name: torch.zeros(0) for name in release.keeps}
    found = []

    def normal(*ids: int) -> Tensor:
        return torch.tensor([of if isinstance(of, float) else of[ids]], dtype=torch.float64)

    for version in range(1, steps + 1):
        noise, kept = release.draw(version, kept, normal)
        found.append(float(noise))
    return found


LEAVES = {(1,): 0.3, (2,): -0.2, (3,): 1.0, (4,): 0.4, (2, 1): 0.5, (4, 1): -0.6, (4, 2): 0.8}


@pytest.mark.parametrize(
    ("efficient", "expected"), [(False, [0.3, 0.2, 1.0, -0.7]), (True, [0.3, 0.066667, 1.0, -0.723810])]
)
def test_a_tree_by_hand(efficient: bool, expected: list[float]) -> None:
    found = added(TreeRelease(multiplier=1.0, efficient=efficient), 4, LEAVES)
    assert found == approx(expected, abs=1e-6)
    again = {(step + 4 * tree, *level): value for (step, *level), value in LEAVES.items() for tree in (0, 1)}
    assert added(TreeRelease(multiplier=1.0, efficient=efficient, restart=4), 8, again) == approx(found * 2)


class GivenTree(TreeRelease):
    """A tree whose nodes are given."""

    name: str = "given_tree"

    def draw(self, version: int, kept: Record, normal: Normal) -> tuple[Tensor, Record]:
        return super().draw(version, kept, lambda *ids: normal(*ids).new_tensor([LEAVES[ids]]))


class Ones(MatrixRelease):
    """A matrix whose independent noise is 1 in each step."""

    name: str = "ones"

    def draw(self, version: int, kept: Record, normal: Normal) -> tuple[Tensor, Record]:
        return super().draw(version, kept, lambda *ids: normal(*ids).new_ones(1))


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ({"name": "GivenTree", "efficient": False}, [0.3, 0.5, 1.5, 0.8]),
        ({"name": "GivenTree"}, [0.3, 0.366667, 1.366667, 0.642857]),
        ({"name": "Ones"}, np.cumsum([1, 0.5, 0.375, 0.3125])),
        ({"name": "Ones", "strategy": "banded", "bands": 2}, np.cumsum([1, 0.5, 0.75, 0.625])),
        ({"name": "Ones", "strategy": "blt", "separation": 1}, np.cumsum([1, 0.5, 0.3, 0.22])),
    ],
    ids=["tree", "efficient", "root", "banded", "blt"],
)
def test_the_noise_of_sums_by_hand(
    release: Raw, expected: Any, simulate: Simulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The only client stays where it is, so the model is the sum of what was added."""
    monkeypatch.setattr(MatrixRelease, "_blt", ((0.9,), (0.5,)))
    named = {"multiplier": 1.0, **release, "name": f"{__name__}:{release['name']}"}
    for rounds in range(1, 5):
        more: Raw = {"local__lr": 1e-12, "uplink": [{"name": "clip_norm", "max": 1.0}], "release": named}
        algorithm = {"name": "fedavg", "weights": "uniform"}
        result = simulate(quadratic([0.0], algorithm, {"dispatch": {"per_round": 1}}, rounds, **more))
        std = result.pandas("steps").noise_std.iloc[-1]
        assert float(result.vectors()["w"][0]) / std == approx(expected[rounds - 1], abs=1e-6)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize(
    ("rounds", "clients", "bands", "sensitivity"),
    [(2, 2, 2, 1.118034), (6, 2, 2, 1.936492), (4, 4, None, 1.219951), (8, 3, None, 2.725631)],
)
def test_noise_is_scaled_by_what_uses_apart_can_move(
    rounds: int, clients: int, bands: int | None, sensitivity: float, given: bool, simulate: Simulate
) -> None:
    """Clients take turns, so that each is used once in so many steps as there are clients."""
    release: Raw = {"name": "matrix", "multiplier": 1.0, "strategy": "banded" if bands else "root", "bands": bands}
    release["separation"] = clients if given else None
    world = {"dispatch": {"picks": [[step % clients] for step in range(rounds)]}}
    more: Raw = {"uplink": [{"name": "clip_norm", "max": 1.0}], "release": release}
    raw = quadratic([0.0] * clients, {"name": "fedavg", "weights": "uniform"}, world, rounds, **more)
    assert simulate(raw).pandas("steps").noise_std.tolist() == approx([sensitivity] * rounds, abs=1e-6)


def matrix(coefficients: Sequence[float], folder: Path, **more: Any) -> MatrixRelease:
    path = folder / "coefficients.txt"
    path.write_text("\n".join(map(str, coefficients)))
    return MatrixRelease(multiplier=1.0, strategy="file", path=str(path), **more)


def test_matrices_by_hand(tmp_path: Path) -> None:
    banded = matrix([1, 0.5], tmp_path, separation=2)
    assert added(banded, 4, 1.0) == approx([1, 0.5, 0.75, 0.625])
    assert banded.sensitivity_of(2) == approx(1.118034) and banded.sensitivity_of(6) == approx(1.936492)
    root = MatrixRelease(multiplier=1.0, separation=3)
    assert root.column(4).tolist() == [1, 0.5, 0.375, 0.3125]
    assert added(root, 4, 1.0) == approx([1, 0.5, 0.375, 0.3125])
    assert MatrixRelease(multiplier=1.0).sensitivity_of(4) == approx(1.219951)
    assert root.sensitivity_of(8) == approx(2.725631, abs=1e-6)


def test_one_theta_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MatrixRelease, "_blt", ((0.9,), (0.5,)))
    release = MatrixRelease(multiplier=1.0, strategy="blt", separation=1)
    assert release.column(4) == approx([1, 0.5, 0.45, 0.405])


@pytest.mark.parametrize(
    ("strategy", "bands", "error"),
    [("blt", None, 14.952975), ("banded", 100, 15.688672), ("root", None, 16.540733), ("banded", 1, 100.0)],
)
def test_errors_of_prefix_sums(strategy: Any, bands: int | None, error: float) -> None:
    """The largest error of a sum of up to 1,000 steps, times what ten uses 100 steps apart can move, as other code has
    it."""
    release, one = MatrixRelease(multiplier=1.0, strategy=strategy, separation=100, bands=bands), {(1,): 1.0}
    if strategy == "root":  # added up for a unit impulse, as below, it would draw a million times
        inverse = release.column(1000) / (1 - 2 * np.arange(1000))
    else:
        impulse = {**one, **{(step,): 0.0 for step in range(2, 1001)}}
        inverse = np.array(added(release, 1000, impulse))
    assert np.linalg.norm(np.cumsum(inverse)) * release.sensitivity_of(1000) == approx(error, abs=1e-4)


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_the_most_exposed_client(release: Raw) -> None:
    """What is counted step by step is the norm of L times a client's shares, for each node or row."""
    made: Any = (TreeRelease if release["name"] == "tree" else MatrixRelease)(**{"multiplier": 1.0, **release})
    draw, exposure, steps = np.random.default_rng(0), made.exposure(), 11
    shares = np.where(draw.random((steps, 3)) < 0.5, draw.random((steps, 3)), 0.0)
    for row in shares:
        exposure.step({client: share for client, share in enumerate(row) if share})
    if release["name"] == "tree":
        size = release.get("restart") or 16
        nodes = [
            (first, first + 2**level)
            for tree in range(0, steps, size)
            for level in range(5)
            for first in range(tree, min(tree + size, steps), 2**level)
            if first + 2**level <= min(tree + size, steps)
        ]
        moved = np.array([shares[first:last].sum(0) for first, last in nodes])
    else:
        column = made.column(steps)
        moved = np.array([[column[t - s] if s <= t else 0.0 for s in range(steps)] for t in range(steps)]) @ shares
    assert [exposure.squares[client] for client in range(3)] == approx((moved**2).sum(0).tolist())


@pytest.mark.parametrize(("steps", "nodes"), [(128, 8), (1000, 10)])
def test_one_use_touches_a_node_of_each_level(steps: int, nodes: int) -> None:
    exposure = TreeRelease(multiplier=1.0).exposure()
    for step in range(steps):
        exposure.step({0: 1.0} if step == 0 else {})
    assert exposure.largest == nodes == math.floor(math.log2(steps)) + 1


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_the_same_bits_when_a_run_goes_on(release: Raw) -> None:
    """What the server keeps of its noise is in checkpoints."""
    raw = {**CORRELATED, "release": {"multiplier": 2.0, **release}}
    one, other = carried_out(raw, PicklingPool(), stop_after=3), carried_out(raw)
    assert one.digest == other.digest and one.info["privacy"] == other.info["privacy"]


@pytest.mark.parametrize(
    "release",
    [
        {"name": "tree", "restart": 1},
        {"name": "matrix", "strategy": "banded", "bands": 1, "separation": 1},
        {"name": "matrix", "strategy": "file", "path": "one.txt"},
    ],
    ids=["tree", "banded", "file"],
)
def test_trees_of_a_step_and_one_coefficient_are_independent_noise(
    release: Raw, simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A matrix scales it by the root of the number of uses."""
    (tmp_path / "one.txt").write_text("1\n")
    monkeypatch.chdir(tmp_path)
    other = simulate({**CORRELATED, "release": {"multiplier": 2.0, **release}})
    most = other.info["privacy"]["largest_uses"]
    uses = {"tree": 1, "banded": len(other.pandas("steps")), "file": most}[release.get("strategy", "tree")]
    one = simulate({**CORRELATED, "release": {"name": "gaussian", "multiplier": 2.0 * math.sqrt(uses)}})
    assert other.vectors()["w"] == approx(one.vectors()["w"], abs=0.0 if uses == 1 else 1e-5)
    assert other.info["privacy"]["epsilon"] == approx(one.info["privacy"]["epsilon"])


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_no_noise_leaves_the_model(release: Raw, simulate: Simulate) -> None:
    raw = {**CORRELATED, "privacy": None, "run": {"rounds": 3}}
    found = simulate({**raw, "release": {"multiplier": 0.0, **release}})
    assert (found.vectors()["w"] == simulate(raw).vectors()["w"]).all()


def test_a_matrix_scaled_by_the_timeline_costs_what_one_use_costs(simulate: Simulate) -> None:
    result = simulate({**CORRELATED, "release": {"name": "matrix", "multiplier": 1.0}}, "--dry")
    assert result.info["privacy"]["epsilon"] == approx(4.377178, abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"release": {"name": "matrix", "separation": 50}}, r"release.separation: must be at most \d+, the few"),
        (
            {"algorithm": {"name": "fedbuff", "buffer": 3}},
            "release.name: must be gaussian where weights differ, because",
        ),
    ],
)
def test_what_the_timeline_refuses(changes: Raw, text: str, simulate: Simulate) -> None:
    raw = {**CORRELATED, "release": {"name": "tree"}, **changes}
    raw["release"] = {"multiplier": 1.0, **raw["release"]}
    with pytest.raises(Exception, match=text):
        simulate(raw, "--dry")
