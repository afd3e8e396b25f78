"""Data sets of Hugging Face's library, in folders that the tests write."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets import load, random_images

datasets = pytest.importorskip("datasets")

PIXELS = random_images(12, 6, 6, 3)


def picture(pixels: np.ndarray) -> dict[str, Any]:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return {"bytes": file.getvalue(), "path": None}


def images(labels: list[int]) -> Any:
    kinds = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=list("abc")), "who": datasets.Value("string")}
    )
    rows = {
        "image": [picture(p) for p in PIXELS[: len(labels)]],
        "label": labels,
        "who": list("xyz" * 4)[: len(labels)],
    }
    return datasets.Dataset.from_dict(rows, features=kinds)


def saved(path: Path, what: Any) -> str:
    what.save_to_disk(str(path))
    return str(path)


def test_columns_of_images_and_labels_are_found(tmp_path: Path) -> None:
    splits = datasets.DatasetDict({"train": images([0, 1, 2] * 3), "test": images([2, 1])})
    dataset = load(name="huggingface", path=saved(tmp_path / "d", splits), clients="who")
    np.testing.assert_array_equal(dataset.train.x, PIXELS[:9])
    assert (dataset.train.y.tolist(), dataset.test.y.tolist(), dataset.num_classes) == ([0, 1, 2] * 3, [2, 1], 3)
    assert dataset.train.columns["who"].tolist() == list("xyz" * 3)


def test_a_single_split_gives_a_share_for_testing(tmp_path: Path) -> None:
    dataset = load(name="huggingface", path=saved(tmp_path / "d", images([0, 1, 2] * 4)), test_share=0.25)
    assert (len(dataset.train), len(dataset.test)) == (9, 3)


def test_lists_of_numbers_are_inputs_too(tmp_path: Path) -> None:
    rows = {"features": np.arange(40.0).reshape(10, 4).tolist(), "label": list("abababaabb")}
    keys = {"scale": "unit", "input": "features"}
    dataset = load(name="huggingface", path=saved(tmp_path / "d", datasets.Dataset.from_dict(rows)), **keys)
    together = np.concatenate([dataset.train.x, dataset.test.x])
    np.testing.assert_array_equal(together[np.argsort(together[:, 0])], np.arange(40).reshape(10, 4))
    assert dataset.num_classes == 2


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"test": "valid"}, r"`test` must be one of the splits \['test', 'train'\], got 'valid'"),
        ({"label": "coarse"}, r"a column 'coarse' must be there, got \['image', 'label', 'who'\]"),
        (
            {"path": "no/such-data"},
            r"`path` must be a folder of `save_to_disk`, got 'no/such-data', where there is none",
        ),
    ],
)
def test_what_is_not_there_is_told(tmp_path: Path, keys: dict[str, Any], complaint: str) -> None:
    splits = datasets.DatasetDict({"train": images([0, 1, 2] * 3), "test": images([2, 1])})
    settings = {"name": "huggingface", "path": saved(tmp_path / "d", splits), **keys}
    with pytest.raises((ValueError, FileNotFoundError), match=complaint):
        load(**settings)


@pytest.mark.parametrize("column", ["who", "image", "kind"])
def test_a_missing_value_is_no_value_of_its_own(tmp_path: Path, column: str) -> None:
    """Without the refusal, a missing text would be the label None."""
    rows = images([0, 1, 2] * 4).add_column("kind", list("abc" * 4))
    row = 3
    lacking = rows.map(lambda values, place: {column: None if place == row else values[column]}, with_indices=True)
    path = saved(tmp_path / "d", lacking)
    with pytest.raises(ValueError, match=f"column '{column}' must have a value in every row, got 1 without"):
        load(name="huggingface", path=path, label="kind", clients="who")


def test_arrays_of_bytes_are_images_of_bytes(tmp_path: Path) -> None:
    """The library gives them as int64."""
    rows = {"image": PIXELS, "label": [0, 1, 2] * 4}
    kinds = datasets.Features({"image": datasets.Array3D((6, 6, 3), "uint8"), "label": datasets.Value("int64")})
    path = saved(tmp_path / "d", datasets.Dataset.from_dict(rows, features=kinds))
    dataset = load(name="huggingface", path=path, test_share=0.25)
    assert {image.tobytes() for image in dataset.train.x} < {image.tobytes() for image in PIXELS}


def test_a_sample_without_a_label_or_without_numbers_is_refused(tmp_path: Path) -> None:
    """The hub has -1 for the first."""
    kinds = datasets.Features(
        {"x": datasets.List(datasets.Value("float32")), "label": datasets.ClassLabel(names=list("abc"))}
    )
    rows: Any = {"x": [[1.0, 2.0]] * 6, "label": [0, 1, 2, -1, 1, 2]}
    path = saved(tmp_path / "d", datasets.Dataset.from_dict(rows, features=kinds))
    assert load(name="huggingface", path=path, input="x", ignore=-1).num_classes == 3
    with pytest.raises(ValueError, match="labels must be 0 to 2, or `ignore`, got 1 that are not, such as -1 in row 3"):
        load(name="huggingface", path=path, input="x")
    rows = {"x": [[1.0, 2.0]] * 5 + [None], "label": [0, 1, 2] * 2}
    path = saved(tmp_path / "e", datasets.Dataset.from_dict(rows, features=kinds))
    with pytest.raises(ValueError, match="column 'x' must have a value in every row, got 1 without"):
        load(name="huggingface", path=path, input="x")


def test_the_split_of_a_damaged_picture_is_named(tmp_path: Path) -> None:
    broken = images([0, 1]).to_dict()
    broken["image"][1] = {"bytes": b"broken", "path": None}
    test = datasets.Dataset.from_dict(broken, features=images([0]).features)
    path = saved(tmp_path / "d", datasets.DatasetDict({"train": images([0, 1]), "test": test}))
    with pytest.raises(ValueError, match="row 1 of image of split test must be a whole image"):
        load(name="huggingface", path=path)


def test_class_labels_must_have_the_same_names_in_both_splits(tmp_path: Path) -> None:
    other = images([2, 1]).cast_column("label", datasets.ClassLabel(names=list("cab")))
    path = saved(tmp_path / "d", datasets.DatasetDict({"train": images([0, 1, 2] * 3), "test": other}))
    with pytest.raises(ValueError, match=r"of 'test' must have the names of those of 'train', \['a', 'b', 'c'\], got"):
        load(name="huggingface", path=path)
