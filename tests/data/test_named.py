"""Splits of a data set, and inputs of several arrays by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from own_modules import MaskedReader, Reader
from same_bits import same_on_ray
from torch import Tensor, nn
from torch.nn import functional as F

import raysim
from raysim import ScenarioError
from raysim.data import Arrays, Split, divided
from raysim.data.federation.partition import Iid, Natural
from raysim.data.meaning import NamedArrays
from raysim.local.outputs import hits, per_label
from raysim.parts.rng import generator
from raysim.runs.inspection import inspect

DRAW = generator(0, "named")
LENGTHS = DRAW.integers(1, 8, size=60)
TOKENS = np.where(np.arange(8) < LENGTHS[:, None], DRAW.integers(1, 12, size=(60, 8)), 0)
Y = (TOKENS == 3).any(axis=1).astype(int)
READ = {"tokens": TOKENS, "lengths": LENGTHS, "y": Y, "user": np.arange(60) % 6}
X = DRAW.standard_normal((60, 5)).astype(np.float32)
TAGS = {"inputs": "tokens", "task": "classes", "num_classes": 12}


def scenario(arrays: dict[str, Any], model: Any, keys: dict[str, Any] | None = None, **more: Any) -> Any:
    """One client takes one step of plain SGD with all of its samples, unless `more` says otherwise."""
    data = divided(Arrays.of(arrays, test_share=0.5, **(keys or {})), clients=1, partition=Iid())
    raw = {"name": "named", "data": data, "model": model, "algorithm": "fedavg", "run": {"rounds": 1}}
    local = {"lr": 0.5, "batch_size": None, "epochs": 1}
    return {**raw, "local": local, "world": {"dispatch": {"per_round": 1}}, **more}


def stepped(module: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    """The module's values after a step of plain SGD."""
    values = dict(module.named_parameters())
    gradients = torch.autograd.grad(loss, list(values.values()))
    return {name: value.detach() - 0.5 * g for (name, value), g in zip(values.items(), gradients, strict=True)}


def run(raw: Any, out: Path) -> raysim.Result:
    return raysim.run(raw, inline=True, out=out)


def close(result: raysim.Result, expected: dict[str, Tensor]) -> None:
    for name, value in result.state_dict().items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=1e-6)


def measured(result: raysim.Result, metric: str, step: int = 1, column: str = "value") -> float:
    rows = result.pandas("evaluations").query("split == 'test' and metric == @metric and step == @step")
    return float(rows[column].item())


def training_rows(raw: Any) -> tuple[Any, Tensor]:
    split = raw["data"].load().train
    return split.x, torch.from_numpy(split.y)


def test_rows_of_named_inputs_are_rows_of_each() -> None:
    named = NamedArrays({"a": np.arange(6), "b": np.arange(12).reshape(6, 2)})
    rows = named[np.array([4, 1])]
    assert len(named) == 6 and rows["a"].tolist() == [4, 1] and rows["b"].tolist() == [[8, 9], [2, 3]]
    assert [len(piece) for piece in named.split(4)] == [4, 2]
    with pytest.raises(ValueError, match="a row for each sample"):
        NamedArrays({"a": np.arange(6), "b": np.arange(5)})


@pytest.mark.parametrize("kind", [Reader, MaskedReader])
def test_a_module_gets_arrays_by_name_and_takes_the_step_of_a_plain_loop(kind: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = kind({"tokens": (8,), "lengths": ()}, 2)
    raw = scenario(READ, module, {"inputs": ("tokens", "lengths")})
    x, y = training_rows(raw)
    given = {name: torch.from_numpy(array).long() for name, array in x.items()}
    result = run(raw, tmp_path)
    close(result, stepped(module, F.cross_entropy(module(**given), y)))
    assert result.info["input_shape"] == {"tokens": [8], "lengths": []}
    assert result.module()(**given).shape == (30, 2)


def test_labels_of_minus_100_count_in_no_loss_and_no_metric(tmp_path: Path) -> None:
    labels = np.where(DRAW.random((60, 8)) < 0.5, -100, TOKENS)
    labels[:, 0] = 5
    torch.manual_seed(0)
    module = nn.Sequential(nn.Embedding(12, 12))
    raw = scenario({"x": TOKENS, "y": labels}, module, TAGS)
    x, y = training_rows(raw)
    result = run(raw, tmp_path)
    tokens = torch.from_numpy(x).long()
    known = y != -100
    close(result, stepped(module, F.cross_entropy(module(tokens)[known], y[known])))
    test = raw["data"].load().test
    asked = torch.from_numpy(test.x).long()
    right = (result.module()(asked).argmax(-1).numpy() == test.y)[test.y != -100]
    assert measured(result, "accuracy") == pytest.approx(right.mean())
    assert measured(result, "accuracy", column="samples") == len(right)


def _pixels() -> tuple[np.ndarray, np.ndarray, nn.Module]:
    x = DRAW.standard_normal((20, 1, 4, 6)).astype(np.float32)
    y = np.where(DRAW.random((20, 4, 6)) < 0.3, -100, (x[:, 0] > 0).astype(int))
    return x, y, nn.Conv2d(1, 2, 1)


@pytest.mark.parametrize("kind", ["multi_label", "regression", "classes"])
def test_targets_of_several_numbers_are_learned_with_their_loss(kind: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    arrays: dict[str, Any] = {"x": X, "y": X[:, :3] * 2}
    module: nn.Module = nn.Linear(5, 3)
    loss: Any = lambda output, y: ((output - y) ** 2).mean() / 2  # noqa: E731
    if kind == "multi_label":
        arrays, loss = {"x": X, "y": (X[:, :3] > 0).astype(int)}, F.binary_cross_entropy_with_logits
    if kind == "classes":
        x, y, module = _pixels()
        arrays, loss = {"x": x, "y": y}, F.cross_entropy
    raw = scenario(arrays, module, {"task": kind, "scale": "unit"})
    x, y = training_rows(raw)
    result = run(raw, tmp_path)
    close(result, stepped(module, loss(module(torch.from_numpy(x)), y)))
    test = raw["data"].load().test
    outputs, targets = result.module()(torch.from_numpy(test.x)), torch.from_numpy(test.y)
    assert measured(result, "loss") == pytest.approx(float(loss(outputs, targets).detach()), rel=1e-5)
    if kind == "multi_label":
        assert measured(result, "accuracy") == pytest.approx(float(((outputs > 0) == (targets > 0)).float().mean()))


def test_a_label_is_paired_with_its_output() -> None:
    logits = torch.tensor([[[0.0, 1.0], [2.0, 0.0]], [[0.0, 3.0], [5.0, 0.0]]])  # (n, length, classes)
    labels = torch.tensor([[1, -100], [0, 0]])
    outputs, known = per_label(logits, labels)
    assert outputs.tolist() == [[0, 1], [0, 3], [5, 0]] and known.tolist() == [1, 0, 0]
    assert hits(logits, labels).sum() == 2
    maps = logits[..., None].movedim(2, 1).contiguous()  # (n, classes, height, width), of one pixel's width
    assert torch.equal(per_label(maps, labels[..., None])[0], outputs) and hits(maps, labels[..., None]).sum() == 2


@pytest.mark.parametrize(
    ("arrays", "keys", "text"),
    [
        (READ, {"inputs": ("tokens", "mask")}, "must hold .*mask_train.*add 'tokens_train'"),
        (READ | {"attention_mask": LENGTHS[:, None] > 1}, {"inputs": ("tokens", "attention_mask")}, "zeros in row"),
        (READ | {"lengths": LENGTHS[:9]}, {"inputs": ("tokens", "lengths")}, "a row for each sample, got shapes"),
        ({"x": TOKENS, "y": np.where(Y[:, None], TOKENS, -100)}, TAGS, "-100 in all of row"),
        ({"x": X, "y": X[:, :2]}, {}, "task: regression  # each number is a target"),
        ({"x": X, "y": X[:, :2]}, {"task": "multi_label"}, "y must be 0 or 1 for each of several labels"),
        (READ | {"lengths": LENGTHS * 2**40}, {"inputs": ("tokens", "lengths")}, "whole numbers of 32 bits"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays: Any, keys: Any, text: str) -> None:
    from raysim.data.loaded import load

    with pytest.raises(ValueError, match=text):
        load(Arrays.of(arrays, **keys))


def test_parts_that_take_one_array_refuse_several() -> None:
    keys = {"inputs": ("tokens", "lengths")}
    with pytest.raises(ScenarioError, match=r"mlp takes .*, and arrays holds named"):
        raysim.parse_scenario(scenario(READ, "mlp", keys))
    data = divided(
        Arrays.of(READ, **keys),
        clients=2,
        partition={"name": "dirichlet", "alpha": 0.5},
        skew={"name": "noise", "sigma": 1.0},
    )
    found = inspect(raysim.parse_scenario(scenario(READ, Reader, keys) | {"data": data}))
    assert [problem.path for problem in found.problems] == ["data.skew"]
    assert "changes one array of inputs, got several: tokens, lengths" in found.problems[0].text


@pytest.mark.slow
@pytest.mark.ray
def test_named_inputs_give_the_same_bits_on_ray(ray_session: Any, tmp_path: Path) -> None:
    data = divided(Arrays.of(READ, inputs=("tokens", "lengths")), clients=6, partition=Natural())
    raw = scenario(READ, Reader) | {"data": data, "run": {"rounds": 3}, "world": {"dispatch": {"per_round": 3}}}
    same_on_ray(raw, tmp_path)


def test_columns_of_unequal_length_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"same length, got .*'y': 2"):
        Split(np.zeros((3, 1, 1, 1), np.uint8), np.zeros(2, np.int64))


def test_taking_rows_takes_them_of_every_column() -> None:
    split = Split(np.arange(8, dtype=np.uint8).reshape(4, 2, 1, 1), np.arange(4), {"user": np.array(list("abca"))})
    taken = split.take(np.array([3, 1]))
    assert taken.x[:, 0, 0, 0].tolist() == [6, 2]
    assert (taken.y.tolist(), taken.columns["user"].tolist(), len(taken)) == ([3, 1], ["a", "b"], 2)
