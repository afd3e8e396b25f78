"""Modules that cannot be trained as they are meant are refused, with what to do."""

from typing import Any

import numpy as np
import pytest
import torch
from conftest import digits
from torch import Tensor, nn

from raysim import parse_scenario
from raysim.data import Arrays
from raysim.runs.inspection import inspect

CALLS = [0]


class Odd(nn.Module):
    """Flawed in some way."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.head = how, nn.Linear(64, 10)
        self.late: nn.Module | None = None
        self.register_buffer("bank", torch.zeros(1))
        self.bank: Tensor
        if how == "double":
            self.head = self.head.double()

    def forward(self, x: Tensor) -> Any:
        x = x.flatten(1)
        if self.how == "double":
            return self.head(x.double())
        if self.how == "late":
            self.late = self.late or nn.Linear(64, 64)
            x = self.late(x)
        if self.how == "bank":
            self.bank = torch.cat([self.bank, x[:, 0]])
        if self.how == "global":
            CALLS[0] += 1
            x = x / CALLS[0]
        outputs = self.head(x)
        if self.how == "auxiliary" and self.training:
            return outputs, outputs
        return outputs.detach() if self.how == "detached" else outputs


def problems(model: Any, data: Any = None, **local: Any) -> str:
    made = digits(data=data or {"name": "digits", "clients": 5, "partition": "iid"}, algorithm="fedavg")
    made["world"]["dispatch"]["per_round"] = 2
    made["local"] |= local
    return " ".join(problem.text for problem in inspect(parse_scenario(made | {"model": model})).problems)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("", ""),
        ("auxiliary", "must return one tensor of floats, got tuple in training mode; return the logits alone"),
        ("late", "must have all parameters and buffers before its first call, which makes or reshapes 'late.bias'"),
        ("bank", "must have all parameters and buffers before its first call, which makes or reshapes 'bank'; make it"),
        ("global", "must give the same for the same values, inputs and seed, got outputs that are"),
        ("detached", "does not require grad"),
        ("double", "parameters become float32, and images are in channels-last"),
    ],
)
def test_a_module_that_loses_what_it_learns_is_refused(how: str, told: str) -> None:
    found = problems(Odd(how))
    assert told in found
    assert bool(told) == bool(found)


class Single(nn.Module):
    """Cannot take a batch of one, or has its outputs turned."""

    def __init__(self, how: str, classes: int) -> None:
        super().__init__()
        self.how, self.head = how, nn.Linear(4, classes)
        self.norm = nn.BatchNorm1d(classes, track_running_stats=False)

    def forward(self, x: Tensor) -> Tensor:
        outputs = self.head(x)
        return {"squeeze": outputs.squeeze, "norm": lambda: self.norm(outputs), "turned": outputs.t}[self.how]()


def test_batches_of_one_are_tried_where_there_are_some() -> None:
    draw = np.random.default_rng(0)
    x, y = draw.standard_normal((60, 4)), draw.integers(3, size=60)
    arrays = {"x_train": x[:50], "y_train": y[:50], "x_test": x[50:], "y_test": y[50:]}
    data = Arrays.of(arrays, clients=5, partition="iid")  # ten samples each
    told = problems(Single("squeeze", 3), data, batch_size=3)
    assert "got shape (3,) for n = 1 inputs of shape (4,); some batches hold one sample, so keep the axis" in told
    assert "some mini-batches hold one sample only; accept one" in problems(Single("norm", 3), data, batch_size=3)
    for how in ("squeeze", "norm"):
        assert not problems(Single(how, 3), data, batch_size=3, drop_last=True)
        assert not problems(Single(how, 3), data, batch_size=4)


def test_turned_outputs_are_told_where_there_are_two_labels() -> None:
    draw = np.random.default_rng(0)
    data = Arrays.of({"x": draw.standard_normal((60, 4)), "y": np.arange(60) % 2}, clients=5, partition="iid")
    assert "must return logits (n, 2), one for each of 2 labels, got shape (2, 3) for n = 3" in problems(
        Single("turned", 2), data
    )


def test_the_advice_for_one_logit_leads_to_a_run() -> None:
    draw = np.random.default_rng(0)
    x, y = draw.standard_normal((40, 4)), draw.integers(2, size=40)
    keys: Any = {"clients": 5, "partition": "iid"}
    refused = problems(nn.Linear(4, 1), Arrays.of({"x": x, "y": y}, **keys))
    assert "return two logits, or, for one, give y as (n, 1) of 0 and 1, with data.task multi_label" in refused
    assert not problems(nn.Linear(4, 2), Arrays.of({"x": x, "y": y}, **keys))
    assert not problems(nn.Linear(4, 1), Arrays.of({"x": x, "y": y[:, None]}, task="multi_label", **keys))
