"""Modules that are given in Python run, whatever they hold, or are refused with what to do."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import digits
from torch import Tensor, nn

import raysim
from raysim import ScenarioError
from raysim.data import Arrays
from raysim.data.sources.in_memory import as_array
from raysim.models.module import GivenModule


class Keeps(nn.Module):
    """Keeps what its last call gave, as a hook for an auxiliary loss does."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        self.last = self.head(x.flatten(1))
        return self.last


def given(module: nn.Module) -> Any:
    raw = digits(data={"name": "digits", "clients": 6, "partition": "iid"}, run__rounds=1, algorithm="fedavg")
    return raw | {"model": module}


def called() -> nn.Module:
    module = Keeps()
    module(torch.zeros(1, 64))
    return module


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated")
@pytest.mark.parametrize(
    "make",
    [
        called,
        lambda: nn.Sequential(nn.Flatten(), nn.utils.weight_norm(nn.Linear(64, 10))),
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 10)).bfloat16(),
    ],
    ids=["keeps its last outputs", "weight norm", "bfloat16"],
)
def test_every_parameter_of_a_given_module_is_trained(make: Any, tmp_path: Path) -> None:
    module = make()
    start = {name: value.detach().clone().float() for name, value in module.named_parameters()}
    trained = raysim.run(given(module), inline=True, out=tmp_path).state_dict()
    assert all(not torch.equal(trained[name], value) for name, value in start.items())


def test_modules_that_differ_in_a_number_differ() -> None:
    one, other = nn.Linear(2, 2), nn.Linear(2, 2)
    other.load_state_dict(one.state_dict())
    assert GivenModule.copy_of(one) == GivenModule.copy_of(other)
    other.scale = 2.0  # type: ignore[assignment]
    assert GivenModule.copy_of(one) != GivenModule.copy_of(other)


def test_a_module_that_cannot_be_copied_is_told_with_what_to_do() -> None:
    locked = nn.Linear(64, 10)
    locked.lock = threading.Lock()  # type: ignore[assignment]
    with pytest.raises(ScenarioError, match=r"model: must be a module that cloudpickle can copy.*give its class"):
        raysim.parse_scenario(given(locked))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32, torch.float64])
def test_tensors_with_gradients_and_of_types_that_numpy_lacks_are_data(kind: torch.dtype) -> None:
    values = torch.tensor([[0.5, 2.0]], dtype=kind, requires_grad=True)
    assert as_array(values).tolist() == [[0.5, 2.0]]
    assert as_array(values).dtype == (np.float64 if kind == torch.float64 else np.float32)
    x = torch.randn(60, 6, requires_grad=True).to(kind)
    assert Arrays.of({"x": x, "y": torch.arange(60) % 3}).load().num_classes == 3
