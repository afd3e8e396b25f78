"""Multilayer perceptrons without autograd: gradients have its bits, and steps are its steps but for rounding."""

import math
from pathlib import Path
from typing import Any

import pytest
from conftest import Raw, digits, override

import raysim

MOMENTUM: Raw = {"name": "sgd", "momentum": 0.9}
BY_GRADIENTS: dict[str, Raw] = {
    "softmax regression": {"model__hidden": [], "local__optimizer": MOMENTUM},
    "two hidden layers": {"model__hidden": [24, 16], "local__optimizer": MOMENTUM},
    "momentum and weight decay": {"local__optimizer": MOMENTUM, "local__weight_decay": 0.01},
    "adam": {"local__optimizer": "adam", "local__lr": 0.01},
    "a tolerance, and all samples in a batch": {"algorithm": {"name": "fedadmm_insa"}, "local__batch_size": None},
    "all samples in a batch": {"local__batch_size": None},
    "sharpness-aware minimization": {"local__gradients": [{"name": "sam", "radius": 0.05}]},
}
BY_STEPS: dict[str, Raw] = {
    "softmax regression": {"model__hidden": []},
    "two hidden layers": {"model__hidden": [24, 16]},
    "batches of two sizes": {"local__batch_size": 7},
    "a proximal term": {"algorithm": {"name": "fedprox", "mu": 0.1}},
    "a personal part": {"model__personal": ["head"]},
}


def run_with_and_without(
    changes: Raw, method: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[raysim.Result, raysim.Result]:
    """Returns a run that calls a method of Chain, and the same run by autograd."""
    from raysim.local.chain import Chain

    raw = override(digits(), **changes, run__rounds=3)
    calls: list[Any] = []
    call = getattr(Chain, method)
    monkeypatch.setattr(Chain, method, lambda *given: calls.append(given) or call(*given))
    found = raysim.run(raw, out=folder, inline=True)
    assert calls
    monkeypatch.setattr(Chain, "of", lambda *_: None)
    calls.clear()
    expected = raysim.run(raw, out=folder, inline=True)
    assert not calls
    return found, expected


@pytest.mark.parametrize("training", BY_GRADIENTS)
def test_its_gradients_have_the_bits_of_autograd(
    training: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, expected = run_with_and_without(BY_GRADIENTS[training], "__call__", tmp_path, monkeypatch)
    assert found.digest == expected.digest


@pytest.mark.parametrize("training", BY_STEPS)
def test_its_steps_are_those_of_autograd(training: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, expected = run_with_and_without(BY_STEPS[training], "descend", tmp_path, monkeypatch)
    assert found.vectors()["w"] == pytest.approx(expected.vectors()["w"], abs=1e-6)
    columns = ["client", "local_steps", "samples_seen", "loss_before", "loss_after"]
    ours, theirs = (result.pandas("updates")[columns].to_numpy() for result in (found, expected))
    assert ours == pytest.approx(theirs, abs=1e-5, nan_ok=True)  # NaN: updates that no step used


def test_other_networks_are_no_chains() -> None:
    from torch import nn, zeros

    from raysim.local.chain import Chain

    def hooked(module: nn.Module) -> nn.Module:
        module.register_forward_hook(lambda *_: None)
        return module

    line, square, relu = nn.Linear(4, 3), nn.Linear(4, 4), nn.ReLU()
    tied = nn.Linear(4, 4)
    tied.weight = square.weight
    assert Chain.of(nn.Sequential(nn.Flatten(), line), [zeros(3, 4), zeros(3)])
    assert Chain.of(nn.Sequential(square, relu, nn.Linear(4, 4), relu, line), [zeros(1)] * 6)
    others = [
        line,
        nn.Sequential(),
        nn.Sequential(line, relu),
        nn.Sequential(line, nn.Tanh(), nn.Linear(3, 2)),
        nn.Sequential(line, nn.Linear(3, 2)),
        nn.Sequential(nn.Linear(4, 3, bias=False)),
        nn.Sequential(hooked(nn.Linear(4, 3))),
        nn.Sequential(square, hooked(nn.ReLU()), line),
        hooked(nn.Sequential(square, nn.ReLU(), line)),
        nn.Sequential(nn.Flatten(0), line),
        nn.Sequential(square, relu, line, relu),
        nn.Sequential(square, relu, square),
        nn.Sequential(square, relu, tied),
    ]
    assert not any(Chain.of(module, [zeros(1)] * len(list(module.parameters()))) for module in others)


def test_a_network_that_repeats_a_layer_is_trained_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Sequential lists a module that it has twice once among its children."""
    from raysim.local.chain import Chain

    raw = override(digits(), run__rounds=3) | {"model": "test_chain:repeated"}
    found = raysim.run(raw, out=tmp_path, inline=True)
    monkeypatch.setattr(Chain, "of", lambda *_: None)
    assert found.digest == raysim.run(raw, out=tmp_path, inline=True).digest


def repeated(input_shape: tuple[int, ...], classes: int) -> Any:
    """An MLP whose ReLU is one object, and which ends with it, too."""
    from torch import nn

    relu = nn.ReLU()
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), 16), relu, nn.Linear(16, classes), relu)
