"""Clients with their own training loop: one of plain PyTorch, or `fit` of an app that was written for Flower."""

from typing import Any

import pytest
import torch
from conftest import Simulate, digits

from raysim.parts.errors import RaysimError

ONE_STEP = {"lr": 0.1, "batch_size": None, "steps": 1}


def app(name: str = "FlowerFedAvg", **keys: Any) -> dict[str, Any]:
    return {"name": f"raysim.flower:{name}", "client_fn": "flower_app:client_fn", **keys}


@pytest.mark.parametrize("client", ["client_fn", "wrapped_fn"])
@pytest.mark.parametrize(("name", "same_as"), [("FlowerFedAvg", "fedavg"), ("FlowerFedBuff", "fedbuff")])
def test_fit_of_a_numpy_client_is_a_clients_training(simulate: Simulate, client: str, name: str, same_as: str) -> None:
    plain = simulate(digits(algorithm=same_as, local=ONE_STEP))
    flower = simulate(digits(algorithm=app(name, client_fn=f"flower_app:{client}"), local=ONE_STEP))
    torch.testing.assert_close(flower.vectors()["w"], plain.vectors()["w"], rtol=0, atol=2e-6)
    columns = ["client", "dispatch", "staleness", "local_steps", "samples_seen", "up_bytes"]
    updates = flower.pandas("updates")
    assert updates[columns].equals(plain.pandas("updates")[columns])
    used = updates[updates.local_steps.notna()]
    assert (used.place == used.client).all() and (used.told == used.version).all() and "text" not in updates


@pytest.mark.parametrize(
    ("returns", "problem"),
    [
        ("fewer samples", "must return how many samples `data` gives the client"),
        ("fewer arrays", "must return arrays of the shapes that it gets"),
    ],
)
def test_what_fit_returns_must_fit(simulate: Simulate, returns: str, problem: str) -> None:
    with pytest.raises(RaysimError, match=problem):
        simulate(digits(algorithm=app(run_config={"returns": returns}), local=ONE_STEP))


@pytest.mark.parametrize("replaces", [False, True])
def test_a_loop_of_plain_pytorch_trains_as_the_built_in_one_does(simulate: Simulate, replaces: bool) -> None:
    keys: dict[str, Any] = {
        "local": {"lr": 0.1, "batch_size": 16, "epochs": 2},
        "world": {"dispatch": {"per_round": 6}},
    }
    plain = simulate(digits(algorithm="fedavg", **keys))
    own = simulate(digits(algorithm={"name": "flower_app:Looping", "replaces": replaces}, **keys))
    torch.testing.assert_close(own.vectors()["w"], plain.vectors()["w"], rtol=0, atol=2e-5)
    columns = ["local_steps", "samples_seen", "up_bytes", "down_bytes"]
    assert own.pandas("updates")[columns].equals(plain.pandas("updates")[columns])
