"""FedMD, FedProto, FedDF and kNN-Per with FedBuff's buffer: by hand, and where they are as in rounds or as FedBuff."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from by_hand import scripted
from conftest import Raw, Simulate, digits
from pytest import approx
from same_bits import same_on_ray
from test_architectures import ALGORITHMS, held, mixed, three
from witness import WitnessPool, execute

from raysim import ScenarioError, parse_scenario
from raysim.laws.runs import PicklingPool, carried_out

NAMES = ["fedmd", "fedproto", "feddf", "knn_per"]
LATE = scripted([[1], [], [], [0]], [[0.0], [3.0]])  # client 0 with staleness 0, client 1 with 3, whose S is 1/2
PUBLIC: Raw = {"public__samples": 2}
SERVER: Raw = {"server_data": {"name": "in_domain", "samples": 2}}
TOO_LATE = "toys_parts:Cutoff"


def buffered(name: str, size: int, **keys: Any) -> Raw:
    algorithm, _ = ALGORITHMS[name]
    given = {"name": algorithm} if isinstance(algorithm, str) else algorithm
    return {**given, "buffer": size, **keys}


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, 0.935031),  # of logits (0, 2) and, by half, (0, 4)
        ({"staleness": "none"}, 0.952574),
        ({"ensemble": "probabilities"}, 0.914536),
    ],
)
def test_stale_teachers_count_less(simulate: Simulate, keys: Raw, expected: float) -> None:
    """Students of all architectures learn from them, also that of the third client, which is in no buffer."""
    fit = {"server_optimizer": "sgd", "server_lr": 2.0, "server_epochs": 300, "server_batch_size": None}
    result = simulate(three({"name": "feddf", "buffer": 2, **fit, **keys}, world=LATE, run__rounds=4, **SERVER))
    for group in (None, "g0", "g1", "g2"):
        with torch.no_grad():
            found = result.module(group=group)(torch.zeros(1, 2)).softmax(1)
        assert found[0, 1].item() == approx(expected, abs=1e-5)


@pytest.mark.parametrize(("staleness", "expected"), [("poly", [0, 8 / 3]), ("none", [0, 3]), (TOO_LATE, [0, 2])])
def test_stale_logits_count_less_in_a_consensus(tmp_path: Path, staleness: str, expected: list[float]) -> None:
    algorithm = {"name": "fedmd", "buffer": 2, "staleness": staleness}
    pool = WitnessPool()
    execute(three(algorithm, world=LATE, run__rounds=4, **PUBLIC), tmp_path, pool)
    assert pool.server_state["consensus"].tolist() == [approx(expected, abs=1e-6)] * 2


@pytest.mark.parametrize(
    ("staleness", "expected"), [("poly", [6 / 7, 2 / 7]), ("none", [0.75, 0.5]), (TOO_LATE, [1, 0])]
)
def test_stale_samples_count_less_in_a_prototype(tmp_path: Path, staleness: str, expected: list[float]) -> None:
    """(1, 0) of three samples, and (0, 2) of one that counts half."""
    model = {"name": "module", "module": "toys_mixed:as_it_is"}
    algorithm = {"name": "fedproto", "buffer": 2, "staleness": staleness}
    x, rows, pool = [(1.0, 0.0)] * 3 + [(0.0, 2.0)], [[0, 1, 2], [3]], WitnessPool()
    execute(held(x, rows, algorithm=algorithm, model=model, world=LATE, run__rounds=4), tmp_path, pool)
    state = pool.server_state
    assert state["prototypes"][0].tolist() == approx(expected, abs=1e-6) and state["known"].tolist() == [1, 0]


def opposed(algorithm: Raw, **more: Any) -> Raw:
    """Two clients, with the inputs (0, 0) and (1, 0), whose labels differ; a step moves their logits from 0 by 1/2."""
    data = held([(0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)], [[0], [4]])["data"]
    x = np.zeros((5, 2), np.float32)
    x[-1, 0] = 1
    data["arrays"] |= {"x_train": x, "y_train": np.array([0, 0, 0, 0, 1])}
    model = {"name": "module", "module": "toys_mixed:as_it_is"}
    return {**held([], [[0], [4]], algorithm=algorithm, model=model, local__lr=1.0, **SERVER), "data": data, **more}


S = 2**-0.5  # of a version's staleness


@pytest.mark.parametrize(
    ("name", "staleness", "expected"),
    [
        ("feddf", "poly", 0.5 - S),  # (1 - S) (1/2) + S (-1/2)
        ("knn_per", "poly", 0.5 - S / 2),  # 1/2 + S (-1/2)
        ("feddf", "none", -0.5),
        ("knn_per", "none", 0.0),
        ("feddf", TOO_LATE, 0.5),
        ("knn_per", TOO_LATE, 0.5),
    ],
)
def test_a_stale_model_or_difference_is_added(simulate: Simulate, name: str, staleness: str, expected: float) -> None:
    """Both clients train from 0 on, and the second reports after the first one's step."""
    more = {"server_epochs": 0} if name == "feddf" else {}
    world = {"dispatch": {"picks": [[0, 1], []]}, "delay": {"name": "scripted", "delays": [[0.0], [1.0]]}}
    algorithm = {"name": name, "buffer": 1, "staleness": staleness, **more}
    result = simulate(opposed(algorithm, world={**world, "staleness": "versions"}, run={"rounds": 2}))
    assert result.vectors()["w"][-2:].tolist() == approx([expected, -expected], abs=1e-6)  # the bias


@pytest.mark.parametrize("weights", ["uniform", "samples"])
def test_each_architecture_moves_by_its_own_updates_in_a_buffer(simulate: Simulate, weights: str) -> None:
    """By the mean over these, not over all in the buffer."""
    bare = {"name": "module", "module": "toys_mixed:as_it_is", "args": {"bias": False}}
    groups = [{"name": "bare", "members": [1], "model": bare}]
    result = simulate(opposed({"name": "knn_per", "buffer": 2, "weights": weights}, clients=groups))
    assert result.vectors()["w"].tolist() == approx([0, 0, 0, 0, 0.5, -0.5])
    assert result.vectors()["w of bare"].tolist() == approx([-0.5, 0, 0.5, 0])


# --- identities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_buffer_of_all_updates_of_a_round_is_the_round(simulate: Simulate, name: str) -> None:
    plain, whole = (
        simulate(mixed(name, algorithm=algorithm, world__delay="none", run__rounds=3))
        for algorithm in (ALGORITHMS[name][0], buffered(name, 6))
    )
    assert plain.info["digest"]["model"] == whole.info["digest"]["model"]
    for table in ("evaluations", "updates"):
        one, other = (found.pandas(table) for found in (plain, whole))
        differs = {key for key in one if not one[key].equals(other[key])}
        assert differs <= {"run", "seconds", "virtual_time"}, table  # an update is used before its round is over


def test_the_model_of_knn_per_is_that_of_fedbuff(simulate: Simulate) -> None:
    one, other = (
        simulate(digits(algorithm=algorithm))
        for algorithm in ({"name": "fedbuff", "buffer": 3}, {"name": "knn_per", "buffer": 3, "weights": "uniform"})
    )
    assert one.digest == other.digest and (one.pandas("updates").staleness > 0).any()


CONCURRENT: Raw = {"dispatch": {"concurrency": 8}, "delay": {"name": "half_normal", "sigma": 3}}


def late(name: str) -> Raw:
    shards = {"chunk": 3, "shards": 2}
    return mixed(name, algorithm=buffered(name, 4), world=CONCURRENT, run__rounds=4, resources=shards)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_when_a_buffered_run_goes_on(name: str) -> None:
    raw = late(name)
    found = carried_out(raw)
    assert any(row["staleness"] for row in found.updates)
    assert carried_out(raw, PicklingPool(), stop_after=2).digest == found.digest
    two = {**raw, "resources": {**raw["resources"], "aggregators": 2}}
    assert carried_out(two).digest == found.digest


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("name", ["feddf", "knn_per"])
def test_the_same_bits_of_a_buffer_on_ray(name: str, tmp_path: Path) -> None:
    same_on_ray(late(name), tmp_path)


def test_weights_by_the_clients_of_a_round_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"algorithm\.weights: must be samples or uniform with a buffer, .* scaled"):
        parse_scenario(digits(algorithm={"name": "knn_per", "buffer": 3, "weights": "scaled"}))
