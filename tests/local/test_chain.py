"""The gradients of multilayer perceptrons without autograd: the same bits as with it."""

from pathlib import Path
from typing import Any

import pytest
from conftest import Raw, digits, override

import raysim

TRAININGS: dict[str, Raw] = {
    "softmax regression": {"model__hidden": []},
    "two hidden layers": {"model__hidden": [24, 16]},
    "momentum and weight decay": {"local__momentum": 0.9, "local__weight_decay": 0.01},
    "adam": {"local__optimizer": "adam", "local__lr": 0.01},
    "a proximal term": {"algorithm": {"name": "fedprox", "mu": 0.1}},
    "a tolerance, and all samples in a batch": {"algorithm": {"name": "fedadmm_insa"}, "local__batch_size": None},
    "sharpness-aware minimization": {"local__sam": 0.05},
    "a personal part": {"model__personal": ["head"]},
}


@pytest.mark.parametrize("training", TRAININGS)
def test_it_has_the_bits_of_autograd(training: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from raysim.local.chain import Chain

    raw = override(digits(), **TRAININGS[training], run__rounds=3)
    calls: list[Any] = []
    call = Chain.__call__
    monkeypatch.setattr(Chain, "__call__", lambda *given: calls.append(given) or call(*given))
    found = raysim.run(raw, out=tmp_path, inline=True)
    assert calls
    monkeypatch.setattr(Chain, "of", lambda *_: None)
    calls.clear()
    expected = raysim.run(raw, out=tmp_path, inline=True)
    assert not calls
    assert found.digest == expected.digest


def test_other_networks_are_no_chains() -> None:
    from torch import nn, zeros

    from raysim.local.chain import Chain

    line = nn.Linear(4, 3)
    assert Chain.of(nn.Sequential(nn.Flatten(), line), [zeros(3, 4), zeros(3)])
    hooked = nn.Linear(4, 3)
    hooked.register_forward_hook(lambda *_: None)
    others = [
        line,
        nn.Sequential(),
        nn.Sequential(line, nn.ReLU()),
        nn.Sequential(line, nn.Tanh(), nn.Linear(3, 2)),
        nn.Sequential(line, nn.Linear(3, 2)),
        nn.Sequential(nn.Linear(4, 3, bias=False)),
        nn.Sequential(hooked),
        nn.Sequential(nn.Flatten(0), line),
    ]
    assert not any(Chain.of(module, [zeros(1)] * len(list(module.parameters()))) for module in others)
