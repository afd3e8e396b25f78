"""What arrays, tables and pictures mean: as keys say it, or as a note says that it was guessed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import command
from conftest import Raw, digits, override
from data_sets import load, part
from image_files import load as load_images
from image_files import shades, write_image
from PIL import Image
from torch import Tensor, nn

from raysim import RunFailed, ScenarioError, parse_scenario, run
from raysim.data import Arrays, divided
from raysim.data.sources.image_folder import TEST
from raysim.data.sources.inputs import numbers_rows
from raysim.parts.rng import generator
from raysim.runs.inspection import inspect

DRAW = generator(0, "meaning")
Y = np.arange(60) % 3


def arrays(x: Any, y: Any = Y, **keys: Any) -> Any:
    """The data set of arrays in memory."""
    return load(name="arrays", arrays={"x": np.asarray(x), "y": np.asarray(y)}, **keys)


def scenario(data: Raw, model: Any = "linear", **more: Any) -> Raw:
    clients = {"clients": 3, "partition": "iid"}
    settings = {"model": model, "world": {"dispatch": {"per_round": 3}}, "run": {"rounds": 2, "evaluate_every": 2}}
    return digits(data={**clients, **data}, algorithm="fedavg", **settings, **more)


# --- inputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", [None, "series"])
def test_each_sensor_of_a_series_is_standardised_by_itself(inputs: str | None) -> None:
    x = DRAW.standard_normal((60, 12, 4)) * [1, 10, 100, 1000] + [0, 1, 2, 3]
    dataset = arrays(x, inputs=inputs)
    assert dataset.train.x.shape == (48, 12, 4)
    np.testing.assert_allclose(dataset.train.x.mean(axis=(0, 1)), 0, atol=1e-6)
    np.testing.assert_allclose(dataset.train.x.std(axis=(0, 1)), 1, atol=1e-6)
    assert dataset.meaning[0] == "x: series of 12 steps of 4 sensors, each sensor scaled by itself"
    assert [note.partition(":")[0] for note in dataset.notes] == ([] if inputs else ["data.inputs"])


def test_a_module_gets_a_series_as_it_is(tmp_path: Path) -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            assert tuple(x.shape[1:]) == (12, 4)
            outputs: Tensor = self.head(x[:, -1])
            return outputs

    data = part(
        name="arrays",
        arrays={"x": DRAW.standard_normal((60, 12, 4)), "y": Y},
        clients=3,
        partition="iid",
        inputs="series",
    )
    result = run(parse_scenario(scenario({}, model=Last()) | {"data": data}), out=tmp_path, inline=True)
    assert result.info["data"][0].startswith("x: series of 12 steps")


@pytest.mark.parametrize(
    ("shape", "inputs", "stored"),
    [
        ((60, 64, 7, 7), None, (64, 7, 7)),  # maps of features: the axis that differs has the channels
        ((60, 7, 7, 64), None, (64, 7, 7)),
        ((60, 3, 9, 7), None, (3, 9, 7)),
        ((60, 9, 7, 3), None, (3, 9, 7)),
        ((60, 9, 7, 6), "images_first", (9, 7, 6)),
        ((60, 9, 7, 6), "images_last", (6, 9, 7)),
        ((60, 9, 7), "images_last", (1, 9, 7)),
        ((60, 8, 8), None, (1, 8, 8)),
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
    for_each = arrays(x, np.roll(x, -1, axis=1), inputs="tokens")
    assert (for_each.train.y.shape[1:], for_each.num_classes) == ((9,), 100_000)
    guessed = arrays(x)
    assert guessed.train.x.dtype == np.float32
    assert "taken for features; if they are tokens of text, say `inputs: tokens`" in guessed.notes[0]


@pytest.mark.parametrize(
    ("x", "inputs", "complaint"),
    [
        (np.ones((60, 4)), "series", "must have 3 axes for `inputs: series`, got shape"),
        (np.ones((60, 4, 4)), "tokens", "must have 2 axes for `inputs: tokens`, got shape"),
        (np.full((60, 4), 0.5), "tokens", "must be whole numbers from 0 .* got 0.5"),
        (np.full((60, 4), -1), "tokens", "must be whole numbers from 0 .* got -1"),
    ],
)
def test_arrays_that_are_not_what_inputs_says_are_refused(x: np.ndarray, inputs: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        arrays(x, inputs=inputs)


def test_a_model_must_take_what_the_inputs_are() -> None:
    data = {"name": "arrays", "path": "text.npz", "inputs": "tokens"}
    with pytest.raises(ScenarioError, match=r"model.name: cnn takes images, and arrays holds text"):
        parse_scenario(scenario(data, model="cnn"))


# --- labels -----------------------------------------------------------------------------------------------------------

X = DRAW.standard_normal((60, 4))


def test_whole_numbers_as_floats_are_targets_with_a_note_or_classes_with_a_key() -> None:
    guessed = arrays(X, Y.astype(float))
    assert guessed.loss == "squared_error"
    assert guessed.notes[0].startswith("data.task: y are floats, but only 0, 1, 2: taken as targets of a regression;")
    assert arrays(X, Y.astype(float), task="regression").notes == ()
    classes = arrays(X, Y.astype(float), task="classes")
    assert (classes.loss, classes.num_classes, classes.notes) == ("cross_entropy", 3, ())
    np.testing.assert_array_equal(classes.train.y, arrays(X, Y).train.y)


def test_integers_are_classes_with_a_note_if_there_are_many_or_targets_with_a_key() -> None:
    many = DRAW.permutation(60)
    assert "y are integers of 60 values in 60 samples: taken as labels" in arrays(X, many, test_share=0.01).notes[-1]
    assert arrays(X, many, task="regression").train.y.dtype == np.float32


@pytest.mark.parametrize("names", [[0, 5, 9], [-1, 0, 1], [10, 20, 1_000_000_000]])
def test_labels_with_gaps_are_numbered_and_told(names: list[int]) -> None:
    dataset = arrays(X, np.array(names)[Y])
    assert (dataset.num_classes, sorted({*dataset.train.y.tolist()})) == (3, [0, 1, 2])
    shown = ", ".join(map(str, names))
    assert dataset.notes == (f"data.task: the labels {shown} of y are numbered from 0 to 2, in this order",)


def test_a_column_of_labels_is_taken_as_the_labels() -> None:
    np.testing.assert_array_equal(arrays(X, Y[:, None]).train.y, arrays(X, Y).train.y)
    assert arrays(X, X[:, :1]).loss == "squared_error"


@pytest.mark.parametrize("key", ["label", "task"])
def test_a_table_with_labels_of_floats_says_so(tmp_path: Path, key: str) -> None:
    rows = pd.DataFrame(X, columns=list("abcd")).assign(label=Y.astype(float) if key == "task" else Y)
    rows.to_parquet(tmp_path / "t.parquet")
    block = {"name": "table", "path": str(tmp_path / "t.parquet"), "label": "label"}
    assert load(**block).loss == ("squared_error" if key == "task" else "cross_entropy")
    assert load(**block, task="classes").num_classes == 3
    assert load(**block, task="regression").loss == "squared_error"


# --- what is there and not used, or used and not meant ----------------------------------------------------------------


def leaking(tmp_path: Path, kind: str) -> tuple[Path, str]:
    """A table with an index that tells the label, and the name of its column."""
    rows = pd.DataFrame(X, columns=list("abcd")).assign(label=np.sort(Y))
    path = tmp_path / ("t.parquet" if kind in ("named", "shuffled") else "t.csv")
    if kind == "unnamed":
        rows.to_csv(path)
        return path, ""
    if kind == "twice":
        rows.to_csv(path)
        pd.read_csv(path).to_csv(path, index=False)
        return path, "Unnamed: 0"
    if kind == "shuffled":
        rows.sample(frac=1, random_state=0).to_parquet(path)
        return path, "__index_level_0__"
    if kind == "part":  # such as the training rows of a larger table
        rows.set_axis(np.arange(60) * 7, axis=0).reset_index().to_csv(path, index=False)
        return path, "index"
    if kind == "named":
        rows.sample(frac=1, random_state=0).reset_index().to_parquet(path)
        return path, "index"
    rows.assign(number=np.arange(1.0, 61)).to_csv(path, index=False)
    return path, "number"


@pytest.mark.parametrize("kind", ["unnamed", "twice", "shuffled", "named", "part", "from 1"])
def test_an_index_is_no_feature(tmp_path: Path, kind: str) -> None:
    path, name = leaking(tmp_path, kind)
    dataset = load(name="table", path=str(path), label="label")
    assert dataset.train.x.shape == (48, 4)
    (note,) = dataset.notes
    assert note.startswith(f"data.features: column {name!r} is an index")
    meant = load(name="table", path=str(path), label="label", features=["a", name])
    assert (meant.train.x.shape, meant.notes) == ((48, 2), ())


def test_an_index_in_an_array_is_told() -> None:
    (note,) = arrays(np.column_stack([np.arange(60), X])).notes
    assert note.startswith("data: feature 0 of x only numbers the rows")
    assert not numbers_rows(np.arange(60) // 2)


def test_arrays_that_are_not_used_are_told() -> None:
    of_splits = {f"{name}_{split}": value for split in ("train", "test", "val") for name, value in (("x", X), ("y", Y))}
    assert load(name="arrays", arrays=of_splits).notes == ("data.arrays: 'x_val', 'y_val' of the arrays are not used",)


@pytest.mark.parametrize("suffix", ["tif", "tiff", "gif", "pgm"])
def test_images_of_other_formats_and_in_folders_below_are_used(tmp_path: Path, suffix: str) -> None:
    for name in "ab":
        write_image(tmp_path / f"train/{name}/0.png", 10, "L")
        write_image(tmp_path / f"train/{name}/more/1.{suffix}", 20, "L")
        write_image(tmp_path / f"test/{name}/0.png", 30)
        write_image(tmp_path / f"train/{name}/.hidden/2.png", 40)
    assert shades(load_images("image_folder", tmp_path)) == ([10, 20] * 2, [30] * 2)


@pytest.mark.parametrize("name", TEST)
def test_test_images_are_found_in_a_folder_of_any_usual_name(tmp_path: Path, name: str) -> None:
    for label in "ab":
        write_image(tmp_path / f"train/{label}/0.png", 10)
        write_image(tmp_path / f"{name}/{label}/0.png", 20)
    assert shades(load_images("image_folder", tmp_path)) == ([10, 10], [20, 20])


def test_files_and_folders_of_images_that_are_not_used_are_told(tmp_path: Path) -> None:
    for folder in ("train", "test", "valid"):
        write_image(tmp_path / folder / "a/0.png", 10)
        write_image(tmp_path / folder / "b/0.png", 20)
    (tmp_path / "train/a/notes.txt").write_text("no image")
    write_image(tmp_path / "test/loose.png", 10)
    assert load_images("image_folder", tmp_path).notes == (
        "data.path: of the folders, 'valid' are not used",
        "data.path: 1 files of 'train' are not used, such as 'a/notes.txt'",
        "data.path: 1 files of 'test' are not used, such as 'loose.png'",
    )


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_as_they_are_shown(tmp_path: Path, orientation: int) -> None:
    """The expected pixels are those of the definition of the eight orientations, by row and column."""
    stored = np.zeros((16, 16), np.uint8)
    stored[:8, :8], stored[:8, 8:], stored[8:, :8], stored[8:, 8:] = 0, 80, 160, 240
    exif = Image.Exif()
    exif[0x0112] = orientation
    for label in "ab":
        for place in range(2):
            (tmp_path / label).mkdir(exist_ok=True)
            Image.fromarray(stored).save(tmp_path / label / f"{place}.png", exif=exif)
    shown = {
        1: stored,
        2: stored[:, ::-1],
        3: stored[::-1, ::-1],
        4: stored[::-1],
        5: stored.T,
        6: np.rot90(stored, -1),
        7: stored[::-1, ::-1].T,
        8: np.rot90(stored),
    }[orientation]
    dataset = load_images("image_folder", tmp_path, size=16, test_share=0.5)
    np.testing.assert_array_equal(dataset.train.x[0, :, :, 0], shown)


# --- what is told, and advice that leads to a run ---------------------------------------------------------------------


def test_check_and_the_run_s_folder_tell_what_arrays_were_taken_for(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, y=Y.astype(float))
    raw = scenario({"name": "arrays", "path": str(tmp_path / "a.npz")})
    (tmp_path / "s.yaml").write_text(json.dumps(raw))
    answer = command("check", tmp_path / "s.yaml", "--data")
    assert answer.exit_code == 0, answer.output
    assert ": data: x: 4 features\n" in answer.output
    assert ": data: y: targets of a regression\n" in answer.output
    assert ": note: data.task: y are floats, but only 0, 1, 2" in answer.output
    info = run(parse_scenario(raw), out=tmp_path / "o", inline=True).info
    assert info["data"] == ["x: 4 features", "y: targets of a regression"]
    assert info["notes"][0].startswith("data.task: ")


@pytest.mark.parametrize(
    ("y", "advice", "follow"),
    [
        (np.eye(3, dtype=int)[Y], r"these rows are one-hot: take y.argmax\(axis=1\)", lambda y: y.argmax(axis=1)),
        (np.column_stack([Y, Y]), r"take one of the columns, such as y\[:, 0\]", lambda y: y[:, 0]),
        (X[:, :2], r"take one of the columns, such as y\[:, 0\]", lambda y: y[:, 0]),
        (
            np.where(Y, Y, np.nan),
            "such as nan in row 0; fill them, or leave their samples out",
            lambda y: np.nan_to_num(y),
        ),
    ],
)
def test_advice_for_labels_leads_to_a_data_set(y: np.ndarray, advice: str, follow: Any) -> None:
    with pytest.raises(ValueError, match=advice):
        arrays(X, y)
    assert len(arrays(X, follow(y)).train) == 48


@pytest.mark.parametrize(
    ("x", "advice", "follow"),
    [
        (X + 1j, "such as np.stack", lambda x: np.stack([x.real, x.imag], axis=1)),
        (
            np.datetime64("2026-01-01") + np.arange(60),
            r"such as \(x - x.min\(\)\)",
            lambda x: (x - x.min()) / np.timedelta64(1, "s"),
        ),
    ],
)
def test_advice_for_inputs_leads_to_a_data_set(x: np.ndarray, advice: str, follow: Any) -> None:
    with pytest.raises(ValueError, match=advice):
        arrays(x)
    assert len(arrays(follow(x)).train) == 48


def test_labels_that_are_all_alike_are_told() -> None:
    """With the one class, every model is right, which is what labels that were lost look like."""
    found = arrays(X, np.full(60, 7))
    assert found.meaning[1] == "y: labels of 1 class (7)"
    assert any("all labels of y are 7" in note for note in found.notes)


def test_advice_for_the_number_of_samples_leads_to_a_data_set() -> None:
    of_train = {"x_train": X, "y_train": Y, "x_test": X[:2], "y_test": Y[:2]}
    with pytest.raises(
        ValueError, match=r"`test_samples` 3 takes 1 samples of each label, got 0 of label 2; leave it out"
    ):
        load(name="arrays", arrays=of_train, test_samples=3)
    assert len(load(name="arrays", arrays=of_train).test) == 2
    with pytest.raises(ValueError, match=r"got 20 of label 0; lower it to 60 or less"):
        load(name="arrays", arrays=of_train, train_samples=63)
    assert len(load(name="arrays", arrays=of_train, train_samples=60).train) == 60


def test_a_bad_cell_is_shown_and_correcting_it_leads_to_a_data_set(tmp_path: Path) -> None:
    rows = pd.DataFrame(X, columns=list("abcd")).astype({"a": object}).assign(label=Y)
    rows.loc[7, "a"] = "broken"
    path = tmp_path / "t.csv"
    rows.to_csv(path, index=False)
    block = {"name": "table", "path": str(path), "label": "label"}
    with pytest.raises(
        ValueError, match=r"'a', such as 'broken' in row 7 of '.*t.csv'; correct these 1 cells, or name"
    ):
        load(**block)
    rows.loc[7, "a"] = "inf"
    rows.to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"got 1 values in 'a' that are not, such as inf in row 7 of '.*t.csv'"):
        load(**block)
    assert load(**block, features=["b", "c"]).train.x.shape == (48, 2)
    rows.loc[7, "a"] = 0.5
    rows.to_csv(path, index=False)
    assert load(**block).train.x.shape == (48, 4)


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
    with pytest.raises(
        RunFailed, match=r"must return logits \(n, 3\).*inputs are no text, so pool what it returns for each"
    ):
        run(parse_scenario(raw), out=tmp_path / "o", inline=True)
    pooled = run(parse_scenario(raw | {"model": Places(pooled=True)}), out=tmp_path / "p", inline=True)
    text = run(parse_scenario(override(raw, data__inputs="tokens")), out=tmp_path / "t", inline=True)
    assert pooled.info["status"] == text.info["status"] == "finished"
    assert any("of which those of the last are used; pool them if" in note for note in text.info["notes"])


def test_what_was_guessed_is_told_where_the_model_fails_for_it(tmp_path: Path) -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = nn.Embedding(9, 4), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            outputs: Tensor = self.head(self.words(x).mean(1))
            return outputs

    data = divided(Arrays.of({"x": DRAW.integers(9, size=(60, 5)), "y": Y}), clients=3, partition="iid")
    (problem,) = inspect(parse_scenario(scenario({}, model=Words()) | {"data": data})).problems
    assert "taken for features; if they are tokens of text, say `inputs: tokens`" in problem.text
    right = data.model_copy(update={"inputs": "tokens"})
    assert inspect(parse_scenario(scenario({}, model=Words()) | {"data": right})).problems == []
