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
        if self.how == "buffer in place":
            self.steps += 1
        if self.how == "buffer by its data":
            self.steps.data += 1
        if self.how == "buffer that was None":
            self.later = torch.ones(()) if self.later is None else self.later + 1
        if self.how == "buffer made late":
            if "late" not in self._buffers:
                self.register_buffer("late", torch.zeros(()), persistent=False)
            self.late += 1
        if self.how == "buffer that grows":
            self.slow.data = torch.ones(self.slow.numel() + 1)
        if self.how == "buffer anew":
            self.slow = self.slow * 2
        if self.how == "number":
            self.count += 1
        if self.how == "tensor in place":
            self.tensor += 1
        if self.how == "tensor anew":
            self.tensor = self.tensor + 1
        if self.how == "array":
            self.array += 1
        if self.how == "list":
            self.past.append(1.0)
        if self.how == "containers":
            self.window.append(1.0)
            self.counter["steps"] += 1
        if self.how == "objects":
            self.state.steps += 1
            self.own.past.append(1)
        if self.how == "tensor in lists":
            self.tensors[0][0] += 1
        if self.how == "of a layer":
            self.head.steps += 1
        if self.how == "dict":
            self.by_name["steps"] = self.by_name.get("steps", 0) + 1
        if self.how == "made late":
            self.late = getattr(self, "late", 0) + 1
        drawn = {
            "torch": lambda: torch.rand((), generator=self.torch).item(),
            "numpy": lambda: self.numpy.random(),
            "python": lambda: self.python.random(),
        }.get(self.how, lambda: 0.0)()
        kept = self.count + len(self.past) + sum(self.by_name.values()) + getattr(self, "late", 0)
        kept += len(self.window) + self.counter["steps"] + self.state.steps + len(self.own.past) + self.head.steps
        kept += (self.later or 0) + self.slow.numel() + self.tensors[0][0]
        return float(kept + self.tensor + self.array[0] + drawn)


HOW = ("buffer in place", "buffer anew", "norm", "number", "tensor in place", "tensor anew", "array", "list", "dict")
BUFFERS = ("buffer by its data", "buffer that was None", "buffer made late", "buffer that grows")
HELD = ("containers", "objects", "tensor in lists", "of a layer", "made late")


@pytest.mark.parametrize("how", [*HOW, *BUFFERS, *HELD, "torch", "numpy", "python"])
def test_a_training_does_not_depend_on_one_before_it(how: str) -> None:
    torch.manual_seed(0)
    net = Net(Counting(how), (), "cross_entropy", CPU)
    task = make_task(net)
    first, again = (task.train(task.received) for _ in range(2))
    assert torch.equal(first.w, again.w)
    assert torch.equal(first.model.buffers, again.model.buffers)
    assert torch.equal(task.predict(first.model, task.x), task.predict(again.model, task.x))
