"""A trained model predicts on inputs as users have them, with what was done to inputs in training."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import Raw, digits
from torch import nn

import raysim
from raysim.data import Arrays, Table
from raysim.data.sources.images import Digits
from results import NotARun

DRAW = np.random.default_rng(0)
TRAIN = {"world": {"dispatch": {"per_round": 4}}, "algorithm": "fedavg", "local": {"lr": 0.1, "batch_size": 16}}
OF_ALL: Raw = {"clients": 4, "partition": "iid"}


def run(data: Any, tmp_path: Path, **more: Any) -> raysim.Result:
    raw = digits(**more) | TRAIN | {"data": data, "run": {"rounds": 4, "evaluate_every": 4}}
    return raysim.run(raw | more, out=tmp_path, inline=True)


def reported(result: raysim.Result, metric: str = "accuracy") -> float:
    found = result.pandas("evaluations")
    return float(found[(found.metric == metric) & (found.subject == "global")].value.iloc[-1])


def money(rows: int) -> pd.DataFrame:
    frame = pd.DataFrame({"age": DRAW.normal(40, 10, rows), "income": DRAW.normal(5e4, 1.5e4, rows)})
    frame["town"] = DRAW.choice(["Rom", "Oslo", "Wien"], rows)
    frame["y"] = np.where(frame.income / 1000 + 20 * (frame.town == "Oslo") > frame.age + 12, "yes", "no")
    return frame


def test_a_table_is_scaled_ordered_and_named_as_in_training(tmp_path: Path) -> None:
    """The rows of a test file have the accuracy that was reported, whatever the order of their columns."""
    for name, rows in (("tr", 300), ("te", 200)):
        money(rows).to_csv(tmp_path / f"{name}.csv", index=False)
    files = {"path": str(tmp_path / "tr.csv"), "test_path": str(tmp_path / "te.csv")}
    result = run({"name": "table", "label": "y", "categorical": "all", **files, **OF_ALL}, tmp_path, model="linear")
    test = pd.read_csv(tmp_path / "te.csv")
    found = raysim.Result(result.folder).predict(test[["town", "y", "income", "age"]])
    assert set(found) == {"yes", "no"} and (found == test.y).mean() == pytest.approx(reported(result), abs=1e-6)
    assert reported(result) > 0.8
    held = pd.DataFrame(
        {"age": test.age, "income": test.income, **{town: test.town == town for town in ("Oslo", "Rom", "Wien")}}
    )
    with torch.no_grad():
        outputs = result.module(raw=True)(torch.tensor(held.to_numpy(float)))
    assert outputs.numpy() == pytest.approx(result.predict(test, outputs=True), abs=1e-5)
    with pytest.raises(ValueError, match="must have a column 'age'"):
        result.predict(test[["town", "income"]])
    with pytest.raises(ValueError, match=r"'town' must hold a value .* of 'Oslo', 'Rom', 'Wien', got 'Bonn' in row 1"):
        result.predict(test.assign(town=["Rom", "Bonn", *["Rom"] * 198]))
    with pytest.raises(ValueError, match=r"'age' must hold numbers, as in training, got the text 'old' in row 0"):
        result.predict(test.assign(age=["old", *["30"] * 199]))
    with pytest.raises(ValueError, match=r"column 'town' of the inputs: an array must have a value everywhere, got 1"):
        result.predict(test.assign(town=[None, *["Rom"] * 199]))


class Mean(nn.Module):
    def __init__(self, input_shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(input_shape[-1], classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(x.mean(1))
        return found


Y = DRAW.integers(3, size=120)
SERIES = (DRAW.standard_normal((120, 7, 3)) + np.eye(3)[Y][:, None]) * [1, 100, 10000]
BYTES = (DRAW.integers(0, 90, (120, 3, 6, 8)) + 50 * np.eye(3)[Y][:, :, None, None]).astype(np.uint8)
MODULE: Raw = {"name": "module", "module": "test_use:Mean"}


@pytest.mark.parametrize(
    ("x", "y", "keys", "model"),
    [
        (SERIES, Y, {"inputs": "series"}, MODULE),
        (BYTES, Y, {"inputs": "images_first"}, "linear"),
        (BYTES.transpose(0, 2, 3, 1), Y, {"scale": "unit", "size": 5}, "linear"),
        (BYTES / 10, Y, {}, "linear"),
        (SERIES[:, 0], np.array(["a", "b", "c"])[Y], {}, "linear"),
        (SERIES[:, 0], SERIES[:, 1] / 1e4, {"task": "regression"}, "linear"),
        (SERIES[:, 0], np.eye(3)[Y].astype(int), {"task": "multi_label"}, "linear"),
    ],
)
def test_arrays_have_the_loss_that_was_reported(x: Any, y: Any, keys: Raw, model: Any, tmp_path: Path) -> None:
    arrays = {"x_train": x[:80], "y_train": y[:80], "x_test": x[80:], "y_test": y[80:]}
    result = run(Arrays.of(arrays, **OF_ALL, **keys), tmp_path, model=model)
    again = raysim.Result(result.folder)
    outputs, labels = torch.from_numpy(again.predict(x[80:], outputs=True)), again.predict(x[80:])
    if keys.get("task") == "regression":
        assert ((outputs.numpy() - y[80:]) ** 2).mean() / 2 == pytest.approx(reported(result, "loss"), rel=1e-5)
        assert labels.shape == (40, 3)
    else:
        assert (labels == y[80:]).mean() == pytest.approx(reported(result), abs=1e-6)
    if "size" not in keys:
        first = x[80:].transpose(0, 3, 1, 2) if x.ndim == 4 and x.shape[-1] == 3 else x[80:]
        with torch.no_grad():
            assert result.module(raw=True)(torch.from_numpy(first)).numpy() == pytest.approx(outputs.numpy(), abs=1e-5)
        with pytest.raises(ValueError, match=r"inputs must be (of shape|as those)"):
            again.predict(x[80:, :2])


def test_images_of_a_named_data_set(tmp_path: Path) -> None:
    result = run({"name": "digits", **OF_ALL}, tmp_path, model={"name": "mlp", "hidden": [8]})
    test = Digits().load().test
    assert (result.predict(test.x) == test.y).mean() == pytest.approx(reported(result), abs=1e-6)
    assert result.predict(test.x[..., 0], outputs=True).shape == (len(test), 10)


def test_texts_become_the_tokens_of_training(tmp_path: Path) -> None:
    lines = [
        {"text": f"{'good' if at % 2 else 'bad'} {at % 7}", "kind": "up" if at % 2 else "down"} for at in range(80)
    ]
    (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, lines)))
    data = {
        "name": "text",
        "path": str(tmp_path / "lines.jsonl"),
        "task": "classify",
        "label": "kind",
        "length": 8,
        **OF_ALL,
    }
    bert = {"model_type": "distilbert", "vocab_size": 30, "n_layers": 1, "n_heads": 2, "dim": 16, "hidden_dim": 32}
    model = {"name": "sequence_classifier", "config": bert}
    result = run(data | {"tokenizer": "characters"}, tmp_path, model=model, local={"optimizer": "adam", "lr": 0.01})
    (tmp_path / "lines.jsonl").unlink()
    found = raysim.Result(result.folder).predict(["good 3", "bad 5", "bad 1"])
    assert found.tolist() == ["up", "down", "down"]
    with pytest.raises(ValueError, match="of a token or more"):
        result.predict(["good", ""])


@pytest.mark.parametrize("change", [{"inputs": None}, {"labels": {"task": "classes"}}, "std", "shape"])
def test_a_damaged_description_of_inputs_is_refused(change: Any, tmp_path: Path) -> None:
    x = DRAW.normal(size=(60, 3))
    result = run(Arrays.of({"x": x, "y": Y[:60]}, **OF_ALL), tmp_path, model="linear")
    info = json.loads((result.folder / "run.json").read_text())
    if change == "std":
        info["data"]["inputs"]["std"].pop()
    elif change == "shape":
        info["data"]["inputs"]["shape"] = [4]
    else:
        info["data"] |= change
    (result.folder / "run.json").write_text(json.dumps(info))
    with pytest.raises(NotARun, match="must say under `data` what inputs and labels were"):
        raysim.Result(result.folder).predict(x)


def test_a_frame_from_python_needs_not_be_given_again(tmp_path: Path) -> None:
    frame = money(200).drop(columns="town")
    result = run(Table.of(frame, label="y", **OF_ALL), tmp_path, model="linear")
    found = raysim.Result(result.folder).predict({"income": frame.income, "age": frame.age})
    assert (found == frame.y).mean() > 0.8
