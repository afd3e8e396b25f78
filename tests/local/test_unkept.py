"""Buffers that no model holds: a client's training must not depend on who was trained before with the same module."""

import pytest
import torch
from local_tasks import CPU, make_task
from torch import Tensor, nn

from raysim.local.net import Net


class Counting(nn.Module):
    """Divides by the steps that it has taken: it counts them in place, in a new tensor, or as BatchNorm does."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.head = nn.Linear(64, 10)
        self.norm = nn.BatchNorm1d(64, momentum=None)  # the mean of all batches so far, of which it has the number
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("slow", torch.ones(()), persistent=False)
        self.steps: Tensor
        self.slow: Tensor

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        if self.how == "norm":
            return self.head(self.norm(x))
        if self.training and self.how == "in place":
            self.steps += 1
        if self.training and self.how == "new":
            self.slow = self.slow * 2
        return self.head(x) / (1 + self.steps) / self.slow


@pytest.mark.parametrize("how", ["in place", "new", "norm"])
def test_a_training_does_not_depend_on_one_before_it(how: str) -> None:
    torch.manual_seed(0)
    net = Net(Counting(how), (), "cross_entropy", CPU)
    task = make_task(net)
    first, again = (task.train(task.received) for _ in range(2))
    assert torch.equal(first.w, again.w)
    assert torch.equal(first.model.buffers, again.model.buffers)
    assert torch.equal(task.predict(first.model, task.x), task.predict(again.model, task.x))
