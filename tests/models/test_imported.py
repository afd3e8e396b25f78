"""What a module draws, seeds and sets of threads in its import decides no bit, and is over when raysim is done."""

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rich.style  # noqa: F401 - which draws a number of Python's generator when it is imported
import torch
from conftest import digits
from torch import nn

import raysim

NET = """
import random
import numpy as np, torch
from torch import nn

{effect}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.head = nn.Dropout(0.2), nn.Linear(64, 10)
        self.scale = 1 + np.random.rand() + random.random()

    def forward(self, x):
        return self.head(self.drop(x.flatten(1))) * self.scale

    def train(self, mode=True):  # which returns nothing
        super().train(mode)
"""
EFFECTS = (
    "torch.manual_seed(0); np.random.seed(0); random.seed(0)",
    "torch.set_num_threads(3)",
    "torch.use_deterministic_algorithms(True)",
)


def settings() -> list[Any]:
    return [
        torch.get_rng_state().tolist(),
        random.getstate(),
        np.random.get_state()[1].tolist(),  # type: ignore[index]
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
    ]


def net(folder: Path, number: int, effect: str) -> Any:
    (folder / f"net_{number}.py").write_text(NET.format(effect=effect))
    return digits(model={"name": "module", "module": f"net_{number}:Net"}, algorithm="fedavg", run__rounds=1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for number in range(len(EFFECTS) + 2):
        sys.modules.pop(f"net_{number}", None)


def test_no_effect_of_its_import_stays_or_counts(folder: Path) -> None:
    before, digests = settings(), []
    for number, effect in enumerate(("pass", *EFFECTS)):
        scenario = net(folder, number, effect)
        result = raysim.run(scenario, out=folder, inline=True)
        digests.append([vector.tolist() for vector in result.vectors().values()])
        assert settings() == before
    assert all(digest == digests[0] for digest in digests)
    assert isinstance(result.module(), nn.Module)


@pytest.mark.slow
def test_nor_does_a_process_that_imports_it_anew(folder: Path) -> None:
    scenario = net(folder, 0, EFFECTS[0])
    inline, worker = (raysim.run(scenario, out=folder, **where).digest for where in ({"inline": True}, {"local": 1}))
    assert inline == worker
