"""How normalisation layers are treated, by hand and through the public path.

Two clients with two samples each fit w * (gamma * z + beta) to y, with full batches and steps of 0.5, from w = gamma =
1 and beta = 0, where z is what the norm makes of x. Client 0 has x = -1.4, -0.2 and y = -1, 3; client 1 has
x = 0.2, 1.4 and y = -1, 1. A norm in training mode makes z = -1, 1 of both, so that only client 0 has something to
learn.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import digits, override
from torch import nn

import raysim
from raysim.models.build import initialise
from raysim.models.layout import Layout
from raysim.models.module import Module

X = np.float32([[-1.4], [-0.2], [0.2], [1.4]])  # of mean 0 and variance 1, for features are standardised
Y = np.float32([-1, 3, -1, 1])


def by_hand() -> nn.Module:
    """The norm, and w, which is a linear layer without bias."""
    module = nn.Sequential(nn.BatchNorm1d(1, eps=1e-12), nn.Linear(1, 1, bias=False))
    nn.init.ones_(module[1].weight)
    return module


def run(norm: str, algorithm: Any, folder: Path, picks: list[list[int]], **more: Any) -> raysim.Result:
    site = np.array([0, 0, 1, 1])
    arrays = {"x_train": X, "y_train": Y, "x_test": X, "y_test": Y, "site_train": site}
    raw = {
        "name": "norms",
        "data": {
            "name": "arrays",
            "arrays": arrays,
            "task": "regression",
            "clients": 2,
            "partition": {"name": "natural", "by": "site"},
        },
        "model": {"name": "module", "module": "test_norms:by_hand", "norm": norm},
        "algorithm": algorithm,
        "local": {"lr": 0.5, "batch_size": None},
        "world": {"dispatch": {"picks": picks}},
        "run": {"rounds": len(picks), "save_clients": True},
    }
    return raysim.run(override(raw, **more), out=folder, inline=True)


def test_fedbn_keeps_parameters_and_statistics_with_each_client(tmp_path: Path) -> None:
    """Parameters: w, and after padding gamma and beta. Statistics: running mean and variance."""
    result = run("local", "fedper", tmp_path, [[0, 1]])
    own, whole = result.clients(), result.vectors()
    np.testing.assert_allclose(own["w"][:, [0, 16, 17]], [[1.25, 1.5, 0.5], [1.25, 1.0, 0.0]], atol=1e-6)
    np.testing.assert_allclose(own["buffers"], [[-0.08, 0.972], [0.08, 0.972]], atol=1e-6)
    np.testing.assert_allclose(whole["w"][[0, 16, 17]], [1.25, 1.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(whole["buffers"], [0.0, 1.0], atol=1e-6)  # which nobody measured
    sent = result.pandas("updates")
    assert set(sent.up_bytes) == set(sent.down_bytes) == {4}  # w alone
    assert result.module(client=1)[0].running_mean.item() == pytest.approx(0.08)


def test_fedbn_goes_on_from_a_clients_own_norm(tmp_path: Path) -> None:
    result = run("local", "fedper", tmp_path, [[1], [1]])
    np.testing.assert_allclose(
        result.clients()["buffers"], [[0.0, 1.0], [0.9 * 0.08 + 0.08, 0.9 * 0.972 + 0.072]], atol=1e-6
    )


def test_fedavg_is_no_fedbn_by_accident(tmp_path: Path) -> None:
    """Clients begin with the averages of all, and keep nothing of their own."""
    result = run("average", "fedavg", tmp_path, [[0, 1], [1]])
    gamma, beta, w = 1.25, 0.25, 1.25  # after the first round, whose running mean and variance are 0 and 0.972
    outputs = w * (gamma * np.array([-1, 1]) + beta)
    apart = outputs - Y[2:]
    after = [
        gamma - 0.5 * np.mean(apart * w * np.array([-1, 1])),
        beta - 0.5 * np.mean(apart * w),
        w - 0.5 * np.mean(apart * outputs / w),
    ]
    np.testing.assert_allclose(result.vectors()["w"], after, atol=1e-6)
    np.testing.assert_allclose(result.vectors()["buffers"], [0.08, 0.9 * 0.972 + 0.072], atol=1e-6)
    assert set(result.pandas("updates").up_bytes) == {4 * 5}


@pytest.mark.parametrize("algorithm", ["fedavg", "decfedavg"])
def test_frozen_norms_stay_and_normalise_as_in_evaluation(tmp_path: Path, algorithm: str) -> None:
    """w becomes 1 - (1.4 * 0.4 + 0.2 * 3.2) / 4 at client 0, and 1 - (0.2 * 1.2 + 1.4 * 0.4) / 4 at client 1."""
    peers = {"topology": "complete", "world": {}, "run__save_clients": False}
    result = run("frozen", algorithm, tmp_path, [[0, 1]], **(peers if algorithm == "decfedavg" else {}))
    saved = result.vectors()
    np.testing.assert_allclose(saved["w"].ravel(), [(0.7 + 0.8) / 2] * saved["w"].size, atol=1e-5)
    assert saved["buffers"].size == 0
    norm = result.module()[0]
    assert (norm.running_mean.item(), norm.running_var.item(), norm.weight.item()) == (0.0, 1.0, 1.0)


@pytest.mark.parametrize("algorithm", [{"name": "fedrep", "head_epochs": 1}, {"name": "fedeq"}, "lg_fedavg"])
def test_other_algorithms_keep_norms_beside_a_head(tmp_path: Path, algorithm: Any) -> None:
    """Two clients train, and a third, which took no part, adapts."""
    model = {
        "name": "module",
        "module": "own_modules:Net",
        "args": {"hidden": 4},
        "norm": "local",
        "personal": ["dense"],
    }
    raw = digits(model=model, algorithm=algorithm, world={"dispatch": {"per_round": 6}}, data__local_test=0.3)
    result = raysim.run(
        override(raw, run__rounds=2, run__save_clients=True, run__evaluate_clients="all", data__unseen=0.1),
        out=tmp_path,
        inline=True,
    )
    own = [result.module(client=client) for client in range(27)]
    means = torch.stack([module.norm.running_mean for module in own])
    picked = result.pandas("updates").query("status == 'used'").client.unique()
    assert (means.abs().sum(1) > 0).nonzero().flatten().tolist() == sorted(picked)
    assert len(means.unique(dim=0)) == len(picked) + 1
    assert torch.equal(own[0].conv.weight, own[1].conv.weight) or algorithm == {"name": "fedeq"}


def test_what_is_personal_becomes_a_model_again() -> None:
    part = Module(module="own_modules:Net", norm="local")
    layout = Layout(initialise(part, (1, 8, 8), 10, seed=0), norm="local")
    assert [entry.name for entry in layout.entries][-2:] == ["norm.weight", "norm.bias"]
    assert layout.buffers_cut == 0
    assert [entry.name for entry in layout.buffers] == ["norm.running_mean", "norm.running_var"]


def test_a_model_without_norms_is_told_before_training(tmp_path: Path) -> None:
    raw = digits(model={"name": "module", "module": "own_modules:Tied", "norm": "frozen"})
    with pytest.raises(raysim.RunFailed, match=r"model\.norm: must be average, because the model has no normalisation"):
        raysim.run(raw, inline=True, out=tmp_path)
