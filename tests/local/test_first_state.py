"""What no model holds: a client's training must not depend on who was trained before with the same module."""

import random
from collections import Counter, deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from local_tasks import CPU, make_task
from torch import Tensor, nn

from raysim.local.net import Net


class State:
    """An object of a user's class, which a module holds in an attribute."""

    def __init__(self) -> None:
        self.past = [0]


class Counting(nn.Module):
    """Divides by the steps that it has taken, which it counts in some way: in a buffer, or in attributes of its own."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.head = nn.Linear(64, 10)
        self.norm = nn.BatchNorm1d(64, momentum=None)  # the mean of all batches so far, of which it has the number
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("slow", torch.ones(()), persistent=False)
        self.steps: Tensor
        self.slow: Tensor
        self.count, self.tensor, self.array = 0, torch.zeros(()), np.zeros(1)
        self.past: list[float] = []
        self.window: deque[float] = deque(maxlen=9)
        self.counter: Counter[str] = Counter()
        self.state, self.own, self.tensors = SimpleNamespace(steps=0), State(), [[torch.zeros(())]]
        self.register_buffer("later", None)
        self.head.steps = 0  # type: ignore[assignment]
        self.by_name: dict[str, int] = {}
        self.draws: dict[str, Any] = {
            "torch": torch.Generator(),
            "numpy": np.random.default_rng(0),
            "python": random.Random(0),
        }
        self.torch, self.numpy, self.python = self.draws.values()

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        if self.how == "norm":
            return self.head(self.norm(x))
        return self.head(x) / (1 + (self.step() if self.training else 0) + self.steps) / self.slow.mean()

    def step(self) -> float:
        drawn = HOW.get(self.how, lambda module: None)(self)
        kept = self.count + len(self.past) + sum(self.by_name.values()) + getattr(self, "late", 0)
        kept += len(self.window) + self.counter["steps"] + self.state.steps + len(self.own.past) + self.head.steps
        kept += (self.later or 0) + self.slow.numel() + self.tensors[0][0]
        return float(kept + self.tensor + self.array[0] + (drawn if isinstance(drawn, float) else 0.0))


def made_late(module: Any) -> None:
    if "late" not in module._buffers:
        module.register_buffer("late", torch.zeros(()), persistent=False)
    module.late += 1


def setting(name: str, value: Any) -> Any:
    """Returns what gives an attribute another value."""
    return lambda module: setattr(module, name, value(module))


HOW: dict[str, Any] = {
    "norm": lambda module: None,
    "buffer in place": lambda module: module.steps.add_(1),
    "buffer by its data": lambda module: module.steps.data.add_(1),
    "buffer that was None": setting("later", lambda module: torch.ones(()) + (module.later or 0)),
    "buffer made late": made_late,
    "buffer that grows": lambda module: setattr(module.slow, "data", torch.ones(module.slow.numel() + 1)),
    "buffer anew": setting("slow", lambda module: module.slow * 2),
    "number": setting("count", lambda module: module.count + 1),
    "tensor in place": lambda module: module.tensor.add_(1),
    "tensor anew": setting("tensor", lambda module: module.tensor + 1),
    "array": lambda module: np.add(module.array, 1, out=module.array),
    "list": lambda module: module.past.append(1.0),
    "a window": lambda module: module.window.append(1.0),
    "a counter": lambda module: module.counter.update(["steps"]),
    "a namespace": lambda module: setattr(module.state, "steps", module.state.steps + 1),
    "an object": lambda module: module.own.past.append(1),
    "tensor in lists": lambda module: module.tensors[0][0].add_(1),
    "of a layer": lambda module: setattr(module.head, "steps", module.head.steps + 1),
    "dict": lambda module: module.by_name.update(steps=module.by_name.get("steps", 0) + 1),
    "made late": setting("late", lambda module: getattr(module, "late", 0) + 1),
    "torch": lambda module: torch.rand((), generator=module.torch).item(),
    "numpy": lambda module: module.numpy.random(),
    "python": lambda module: module.python.random(),
}


@pytest.mark.parametrize("how", HOW)
def test_a_training_does_not_depend_on_one_before_it(how: str) -> None:
    torch.manual_seed(0)
    net = Net(Counting(how), (), "cross_entropy", CPU)
    task = make_task(net)
    first, again = (task.train(task.received) for _ in range(2))
    assert torch.equal(first.w, again.w)
    assert torch.equal(first.model.buffers, again.model.buffers)
    assert torch.equal(task.predict(first.model, task.x), task.predict(again.model, task.x))
