"""What arrays mean: by a rule or by a key; or one error shows the lines between which to choose."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import command
from conftest import Raw, digits, override
from data_sets import load, part
from torch import Tensor, nn

from raysim import RunFailed, ScenarioError, parse_scenario, run
from raysim.data import loaded
from raysim.parts.rng import generator
from results.keys import parse

DRAW = generator(0, "meaning")
X, Y = DRAW.standard_normal((60, 4)), np.arange(60) % 3
MASKS = np.where(DRAW.random((60, 5, 6)) < 0.2, 255, DRAW.integers(3, size=(60, 5, 6)))


def arrays(x: Any = X, y: Any = Y, **keys: Any) -> Any:
    """The data set of arrays in memory."""
    return load(name="arrays", arrays={"x": np.asarray(x), "y": np.asarray(y)}, **keys)


def scenario(data: Raw, model: Any = "linear", **more: Any) -> Raw:
    clients = {"clients": 3, "partition": "iid"}
    settings = {"model": model, "world": {"dispatch": {"per_round": 3}}, "run": {"rounds": 2, "evaluate_every": 2}}
    return digits(data={**clients, **data}, algorithm="fedavg", **settings, **more)


def asked(x: Any = X, y: Any = Y, **keys: Any) -> list[str]:
    """The lines between which the error for some arrays lets choose."""
    with pytest.raises(ValueError, match="add one of these lines to `data`") as error:
        arrays(x, y, **keys)
    return [line.partition("#")[0].strip() for line in str(error.value).splitlines() if line.startswith("    ")]


# --- inputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "kind", "keys"),
    [
        ((60, 12, 4), "float64", ["images_first", "images_last", "series"]),
        ((60, 8, 8), "uint8", ["images_first", "images_last", "series"]),
        ((60, 4, 9, 7), "float32", ["images_first", "images_last"]),  # maps, or images with opacity
        ((60, 3, 9, 3), "uint8", ["images_first", "images_last"]),
        ((60, 1, 4, 4, 4), "float32", ["volumes"]),
    ],
)
def test_inputs_without_a_rule_must_be_said(shape: tuple[int, ...], kind: str, keys: list[str]) -> None:
    x = DRAW.integers(200, size=shape).astype(kind)
    assert asked(x) == [f"inputs: {key}" for key in keys]
    for key in keys:
        assert len(arrays(x, inputs=key).train) == 48


def test_each_sensor_of_a_series_is_standardised_by_itself() -> None:
    x = DRAW.standard_normal((60, 12, 4)) * [1, 10, 100, 1000] + [0, 1, 2, 3]
    dataset = arrays(x, inputs="series")
    assert dataset.train.x.shape == (48, 12, 4)
    np.testing.assert_allclose(dataset.train.x.mean(axis=(0, 1)), 0, atol=1e-6)
    np.testing.assert_allclose(dataset.train.x.std(axis=(0, 1)), 1, atol=1e-6)
    one = arrays(x[:, :, 1], inputs="series")
    assert one.train.x.shape == (48, 12, 1)
    assert abs(one.train.x.std(axis=0)).max() > 1.01  # not each step


def test_a_module_gets_a_series_as_it_is_and_the_run_s_folder_keeps_its_scaling(tmp_path: Path) -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            assert tuple(x.shape[1:]) == (12, 4)
            outputs: Tensor = self.head(x[:, -1])
            return outputs

    x = DRAW.standard_normal((60, 12, 4)) * 100
    data = part(name="arrays", arrays={"x": x, "y": Y}, clients=3, partition="iid", inputs="series")
    info = run(parse_scenario(scenario({}, model=Last()) | {"data": data}), out=tmp_path, inline=True).info
    inputs = info["data"]["inputs"]
    assert (inputs["kind"], inputs["shape"]) == ("series", [12, 4])
    assert loaded.load(data).train.x * inputs["std"] + inputs["mean"] == pytest.approx(x[_rows(x, data)], abs=1e-4)


def _rows(x: np.ndarray, data: Any) -> np.ndarray:
    """The rows of the training samples, by the order of their first numbers."""
    unscaled = data.model_copy(update={"scale": "unit"}).load().train.x[:, 0, 0]
    places = {value: row for row, value in enumerate(x[:, 0, 0].astype(np.float32).tolist())}
    return np.array([places[value] for value in unscaled.tolist()])


@pytest.mark.parametrize(
    ("shape", "inputs", "stored"),
    [
        ((60, 64, 7, 7), "images_first", (64, 7, 7)),  # maps of features
        ((60, 3, 9, 7), None, (3, 9, 7)),
        ((60, 9, 7, 3), None, (3, 9, 7)),
        ((60, 9, 7, 6), "images_first", (9, 7, 6)),
        ((60, 9, 7, 6), "images_last", (6, 9, 7)),
        ((60, 9, 7), "images_last", (1, 9, 7)),
        ((60, 8, 8), "images_first", (1, 8, 8)),
    ],
)
def test_images_of_floats_have_their_channels_first(
    shape: tuple[int, ...], inputs: str | None, stored: tuple[int, ...]
) -> None:
    x = DRAW.standard_normal(shape)
    dataset = arrays(x, inputs=inputs, scale="unit")
    assert dataset.train.x.shape[1:] == stored
    turned = shape[1:] not in (stored, stored[1:])
    expected = np.moveaxis(x, -1, 1) if turned else x.reshape(60, *stored)
    assert dataset.train.x.sum() + dataset.test.x.sum() == pytest.approx(expected.sum(), abs=1e-2)
    assert any((dataset.train.x[0] == image).all() for image in expected.astype(np.float32))


@pytest.mark.parametrize(("inputs", "stored"), [("images_first", (6, 7, 5)), ("images_last", (5, 6, 7))])
def test_bytes_of_images_have_their_channels_last(inputs: str, stored: tuple[int, ...]) -> None:
    x = DRAW.integers(256, size=(60, 5, 6, 7), dtype=np.uint8)
    assert arrays(x, inputs=inputs).train.x.shape[1:] == stored


def test_tokens_stay_whole_numbers_above_those_of_16_bits() -> None:
    x = DRAW.integers(100_000, size=(60, 9))
    x[0, 0] = 99_999
    dataset = arrays(x, inputs="tokens")
    assert (dataset.train.x.dtype, max(dataset.train.x.max(), dataset.test.x.max())) == (np.int32, 99_999)
    for_each = arrays(x, np.roll(x, -1, axis=1), inputs="tokens", task="classes", num_classes=100_000)
    assert (for_each.train.y.shape[1:], for_each.num_classes) == ((9,), 100_000)
    assert arrays(x).train.x.dtype == np.float32  # features, as all (n, d) are


@pytest.mark.parametrize(
    ("x", "inputs", "complaint"),
    [
        (np.ones(60), "series", "must have 2 or 3 axes for `inputs: series`, got shape"),
        (np.ones((60, 4, 4)), "tokens", "must have 2 axes for `inputs: tokens`, got shape"),
        (np.ones((60, 0)), "features", r"must be an array of numbers .* got float64 of shape \(60, 0\)"),
        (np.full((60, 4), 0.5), "tokens", "must be whole numbers from 0 .* got 0.5"),
        (np.full((60, 4), -1), "tokens", "must be whole numbers from 0 .* got -1 in row 0, place 0; give a token"),
    ],
)
def test_arrays_that_are_not_what_inputs_says_are_refused(x: np.ndarray, inputs: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        arrays(x, inputs=inputs)


@pytest.mark.parametrize(("place", "where"), [((7, 2), "row 7, feature 2"), ((7, 1, 3), r"row 7, place \(1, 3\)")])
def test_a_number_that_is_too_large_is_shown(place: tuple[int, ...], where: str) -> None:
    x = DRAW.standard_normal((60, 4, 4)[: len(place)])
    x[place] = 1e300
    with pytest.raises(ValueError, match=rf"got 1 values that are not, such as 1e\+300 in {where}; fill them"):
        arrays(x, inputs="features" if x.ndim == 2 else "series")


# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "keys"),
    [
        (Y.astype(float), ["task: regression", "task: classes"]),
        (X[:, 0], ["task: regression"]),
        (np.arange(60) // 3 * 2 + 1, ["task: regression", "task: classes", "num_classes: 40"]),
        (np.array([0, 5, 9])[Y], ["task: regression", "task: classes", "num_classes: 10"]),
        (Y - 1, ["task: regression", "task: classes", "ignore: -1"]),
        (np.array([0, 1, 255])[Y], ["task: regression", "task: classes", "num_classes: 256", "ignore: 255"]),
        (np.array([0, 1, 255], np.uint8)[Y], ["task: regression", "task: classes", "num_classes: 256", "ignore: 255"]),
        (X[:, :2], ["task: regression"]),
        (np.column_stack([Y, Y]), ["task: regression", "task: classes"]),
        (np.column_stack([Y, Y]) > 0, ["task: regression", "task: multi_label", "task: classes"]),
        (np.eye(3, dtype=int)[Y], ["task: regression", "task: multi_label", "task: classes"]),
    ],
)
def test_labels_without_a_rule_must_be_said(y: np.ndarray, keys: list[str]) -> None:
    assert asked(y=y) == keys
    for key in keys:
        assert len(arrays(y=y, **parse(key)).train) > 30


def test_counts_of_126_values_are_no_classes_unless_it_is_said() -> None:
    """Such as bicycles at a station in an hour."""
    counts = np.arange(252) % 126
    x = DRAW.standard_normal((252, 3))
    assert asked(x, counts) == ["task: regression", "task: classes", "num_classes: 126"]
    assert arrays(x, counts, task="regression").train.y.dtype == np.float32
    assert arrays(x, counts, task="classes").num_classes == arrays(x, counts, num_classes=126).num_classes == 126
    assert arrays(x[:200], np.arange(200) % 100).num_classes == 100


@pytest.mark.parametrize("y", [Y, Y.astype(np.uint8), Y[:, None], np.array(list("cab"))[Y], Y > 0])
def test_whole_numbers_without_gaps_texts_and_booleans_are_classes(y: np.ndarray) -> None:
    dataset = arrays(y=y)
    classes = len(np.unique(y))
    assert (dataset.loss, dataset.num_classes, dataset.notes) == ("cross_entropy", classes, ())
    assert dataset.meaning.labels.names == (("a", "b", "c") if y.dtype.kind == "U" else ())


@pytest.mark.parametrize("names", [[0, 5, 9], [-1, 0, 1], [10, 20, 1_000_000_000], [0.0, 1.0, 2.0]])
def test_classes_are_numbered_in_sorted_order_if_the_task_says_so(names: list[float]) -> None:
    dataset = arrays(y=np.array(names)[Y], task="classes")
    assert (dataset.num_classes, sorted({*dataset.train.y.tolist()})) == (3, [0, 1, 2])
    assert dataset.meaning.labels.names == (() if names == [0, 1, 2] else tuple(names))


def test_a_number_of_classes_keeps_the_labels_as_they_are() -> None:
    dataset = arrays(y=np.array([0, 5, 9])[Y], num_classes=10)
    assert (dataset.num_classes, {*dataset.train.y.tolist()}) == (10, {0, 5, 9})
    with pytest.raises(ValueError, match="labels must be 0 to 4, or `ignore`, got 40 that are not, such as 5 in row"):
        arrays(y=np.array([0, 5, 9])[Y], num_classes=5)


def test_samples_whose_label_is_to_be_ignored_are_left_out() -> None:
    x = np.column_stack([Y, X[:, 0]])
    dataset = arrays(x, Y - 1, ignore=-1, scale="unit")
    assert (len(dataset.train) + len(dataset.test), dataset.num_classes) == (40, 2)
    np.testing.assert_array_equal(dataset.train.x[:, 0], dataset.train.y + 1)


def test_a_mask_s_number_for_no_label_is_none_if_it_is_said() -> None:
    x = DRAW.integers(256, size=(60, 5, 6, 3)).astype(np.uint8)
    assert asked(x, MASKS) == ["task: classes"]
    assert asked(x, MASKS, task="classes") == ["ignore: 255", "num_classes: 256"]
    dataset = arrays(x, MASKS, task="classes", ignore=255)
    assert dataset.num_classes == 3
    together = np.concatenate([dataset.train.y, dataset.test.y])
    assert sorted({*together.ravel().tolist()}) == [-100, 0, 1, 2]
    assert (together == -100).sum() == (MASKS == 255).sum()
    assert arrays(x, MASKS, task="classes", num_classes=256).num_classes == 256
    usual = arrays(x, np.where(MASKS == 255, -100, MASKS), task="classes")  # torch's own number for none
    assert usual.num_classes == 3


def test_a_mask_of_0_and_255_or_of_truth_values_may_be_of_two_classes() -> None:
    x, masks = DRAW.integers(256, size=(60, 5, 6, 3)).astype(np.uint8), np.where(MASKS == 255, 255, 0)
    with pytest.raises(ValueError, match="give y == 255 if it is the second of two classes, or add one of these lines"):
        arrays(x, masks, task="classes")
    dataset = arrays(x, masks == 255, task="classes")
    assert (dataset.num_classes, dataset.meaning.labels.places) == (2, (5, 6))
    assert dataset.train.y.sum() + dataset.test.y.sum() == (masks == 255).sum()
    with pytest.raises(ValueError, match=r"y must be .* \(n, height, width\), got int64 of shape \(60, 1, 5, 6\);"):
        arrays(x, masks[:, None])


def test_inputs_and_labels_are_asked_for_at_once() -> None:
    found = asked(DRAW.standard_normal((60, 12, 4)), Y.astype(float))
    assert {"inputs: series", "task: classes", "task: regression"} <= {*found}


@pytest.mark.parametrize(
    ("y", "keys", "complaint"),
    [
        (np.where(Y, Y, np.nan), {"task": "regression"}, "such as nan in row 0; correct them, or leave their samples"),
        (np.full(60, 1e19), {"task": "classes"}, r"below 2\*\*53 for `task: classes`, .* such as 1e\+19 in row 0"),
        (X[:, :2], {"task": "classes"}, r"y must be whole numbers below"),
        (X[:, :2], {"task": "multi_label"}, r"y must be 0 or 1 for each .* such as -?[\d.]+ in row 0"),
        (np.array(list("abc"))[Y], {"task": "regression"}, "must be numbers .* got <U1"),
        (np.datetime64("2020-01-01") + Y, {}, r"must be numbers or texts, .* got datetime64"),
        (np.eye(3, dtype=int)[Y], {}, r"rows are one-hot, so give y.argmax\(axis=1\), or"),
    ],
)
def test_labels_that_are_not_what_is_said_are_refused(y: np.ndarray, keys: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        arrays(y=y, **keys)


def test_keys_of_classes_are_refused_for_other_tasks() -> None:
    data = {"name": "arrays", "path": "a.npz", "task": "regression", "ignore": 3}
    with pytest.raises(ScenarioError, match="`num_classes` and `ignore` are for classes, got `task: regression`"):
        parse_scenario(scenario(data))


def test_labels_of_whole_numbers_stay_classes_in_every_type_of_them() -> None:
    """Without that, numpy makes floats of int64 and uint64."""
    splits = {"x_train": X, "y_train": Y, "x_test": X[:20] + 1, "y_test": Y[:20].astype(np.uint64)}
    dataset = load(name="arrays", arrays=splits)
    assert (dataset.loss, dataset.num_classes, dataset.test.y.tolist()) == ("cross_entropy", 3, Y[:20].tolist())
    large = np.array([1, 2**63, 2**64 - 1], dtype=np.uint64)[Y]
    keys: Any = {"name": "arrays", "task": "classes"}
    with pytest.raises(ValueError, match=r"whole numbers below 2\*\*63"):
        load(arrays={**splits, "y_train": large, "y_test": Y[:20]}, **keys)
    with pytest.raises(ValueError, match=r"got int64 of training samples and <U21 of test samples; make them alike$"):
        load(arrays={**splits, "y_test": Y[:20].astype(str)}, **keys)


def test_advice_for_the_number_of_samples_leads_to_a_data_set() -> None:
    of_train = {"x_train": X, "y_train": Y, "x_test": X[:2], "y_test": Y[:2]}
    with pytest.raises(ValueError, match=r"`test_samples` 3 takes 1 samples of each label, got 0 of label 2; leave"):
        load(name="arrays", arrays=of_train, test_samples=3)
    assert len(load(name="arrays", arrays=of_train).test) == 2
    with pytest.raises(ValueError, match=r"got 20 of label 0; lower it to 60 or less"):
        load(name="arrays", arrays=of_train, train_samples=63)
    assert len(load(name="arrays", arrays=of_train, train_samples=60).train) == 60


# --- what is done -----------------------------------------------------------------------------------------------------


def test_check_and_the_run_s_folder_tell_what_is_done(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, y=Y.astype(float), site=Y, names=np.array(["a", "b"]))
    raw = scenario({"name": "arrays", "path": str(tmp_path / "a.npz")})
    (tmp_path / "s.yaml").write_text(json.dumps(raw))
    answer = command("check", tmp_path / "s.yaml", "--data")
    assert answer.exit_code == 2
    assert "data.task: must say what y are, floats of 3 values, 0.0, 1.0, 2.0; add one of" in answer.stderr
    with pytest.raises(RunFailed, match="task: classes "):
        run(parse_scenario(raw), out=tmp_path / "o", inline=True)
    answer = command("check", tmp_path / "s.yaml", "--data", "--set", "data.task=classes")
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.splitlines()[1:] == [
        f"{tmp_path}/s.yaml: data: {line}"
        for line in (
            "x: features (4,) of float32, each feature with mean 0 and deviation 1",
            "y: 3 classes",
            "columns: site (3 values)",
            "not used: names",
        )
    ]
    info = run(parse_scenario(override(raw, data__task="classes")), out=tmp_path / "o", inline=True).info
    assert info["data"]["labels"] == {"task": "classes", "outputs": 3, "names": [], "places": []}
    assert info["data"]["columns"] == {"site": 3} and info["data"]["unused"] == ["names"]
    assert info["data"]["inputs"]["mean"] == pytest.approx(X.mean(axis=0), abs=0.2)


class Places(nn.Module):
    """Logits at each place of the input, of which nobody took the mean unless `pooled`."""

    def __init__(self, pooled: bool = False) -> None:
        super().__init__()
        self.head, self.pooled = nn.Linear(1, 3), pooled

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.head(x[..., None].float())
        return outputs.mean(1) if self.pooled else outputs


@pytest.mark.parametrize("length", [3, 5])
def test_outputs_for_each_place_are_refused_unless_inputs_are_text(tmp_path: Path, length: int) -> None:
    np.savez(tmp_path / "a.npz", x=DRAW.integers(9, size=(60, length)), y=Y)
    raw = scenario({"name": "arrays", "path": str(tmp_path / "a.npz")}, model=Places())
    with pytest.raises(RunFailed, match=r"must return logits \(n, 3\).*inputs are not text, so pool what it returns"):
        run(parse_scenario(raw), out=tmp_path / "o", inline=True)
    pooled = run(parse_scenario(raw | {"model": Places(pooled=True)}), out=tmp_path / "p", inline=True)
    text = run(parse_scenario(override(raw, data__inputs="tokens")), out=tmp_path / "t", inline=True)
    assert pooled.info["status"] == text.info["status"] == "finished"


def test_labels_that_are_missing_are_told_before_it_is_asked_what_they_are() -> None:
    y = np.where(np.arange(20) == 7, np.nan, np.arange(20) % 2)
    with pytest.raises(ValueError, match="y must have a value in every row, got none in 1, such as row 7"):
        load(name="arrays", arrays={"x": np.ones((20, 2)), "y": y})
