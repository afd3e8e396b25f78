"""CA2FL: by hand, against its formulas in plain Python, and where it is FedBuff."""

from collections import Counter

import numpy as np
import pytest
from conftest import Raw, Simulate, quadratic

from raysim import Result


@pytest.mark.parametrize(("rounds", "expected"), [(1, 2.0), (2, 4.5)])
def test_two_buffers_by_hand(simulate: Simulate, rounds: int, expected: float) -> None:
    """Deltas 1, 3 of clients 0, 1; then 2, 4 of clients 1, 2: v = 2, then 1 + ((2 - 3) + (4 - 0)) / 2."""
    world = {"dispatch": {"picks": [[0, 1], [1, 2]]}}
    functions: Raw = {"data__curvatures": [0.0, 0.5, 0.0, 0.0], "data__slopes": [-1.0, 0.0, -4.0, 0.0]}
    raw = quadratic([0.0, 6.0, 0.0, 0.0], {"name": "ca2fl", "buffer": 2}, world, rounds, **functions)
    assert simulate(raw).vectors()["w"].tolist() == pytest.approx([expected], abs=1e-6)


def follow(result: Result, centers: list[float], functions: Raw, server_lr: float = 1.0, lr: float = 1.0) -> float:
    """The formulas, one number at a time, for who the tables say came from which version in which step."""
    curvatures, slopes = functions["data__curvatures"], functions["data__slopes"]
    models, caches = [0.0], [0.0] * len(centers)
    used = result.pandas("updates").query("status == 'used'").sort_values(["step", "dispatch"])
    for _, members in used.groupby("step"):
        came = list(zip(members.client, members.version, strict=True))
        deltas = [-lr * (curvatures[i] * (models[version] - centers[i]) + slopes[i]) for i, version in came]
        calibrated = [delta - caches[client] for delta, (client, _) in zip(deltas, came, strict=True)]
        models.append(models[-1] + server_lr * (np.mean(caches) + np.mean(calibrated)))
        for delta, (client, _) in zip(deltas, came, strict=True):
            caches[client] = delta
    return models[-1]


@pytest.mark.parametrize("chunk", [1, 4])
def test_many_steps_in_which_clients_come_twice(simulate: Simulate, chunk: int) -> None:
    """With delays, in which buffers hold several updates of a client, from several versions."""
    world = {"dispatch": {"per_round": 3}, "delay": {"name": "half_normal", "sigma": 1.5}}
    centers = [1.0, -2.0, 3.0, 0.5, -1.0]
    functions: Raw = {"data__curvatures": [0.2, 0.5, 0.3, 0.4, 0.1], "data__slopes": [0.1, -0.2, 0.3, 0.0, -0.5]}
    block = {"name": "ca2fl", "buffer": 7, "server_lr": 0.5}
    raw = quadratic(centers, block, world, 40, resources__chunk=chunk, **functions)
    result = simulate(raw)
    members = [group for _, group in result.pandas("updates").query("status == 'used'").groupby("step")]
    twice = [group for group in members if max(Counter(group.client).values()) > 1]
    assert len(members) > 10
    assert any(group.groupby("client").version.nunique().max() > 1 for group in twice)
    expected = follow(result, centers, functions, server_lr=0.5)
    assert result.vectors()["w"].tolist() == pytest.approx([expected], abs=1e-5)
