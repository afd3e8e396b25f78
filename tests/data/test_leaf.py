"""Data in LEAF's layout: images of many users, in JSON files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets import DATA
from PIL import Image

from raysim.data import Dataset, federate
from raysim.data.federation.server import NoServerData

Users = dict[str, tuple[list[Any], list[Any]]]


def load(name: str, path: Path, clients: int = 1, **settings: Any) -> Dataset:
    dataset = DATA.validate_python({"name": name, "path": str(path), "clients": clients, **settings}).load()
    assert isinstance(dataset, Dataset)
    return dataset


def write_leaf(file: Path, users: Users) -> None:
    """Writes a file as LEAF does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "users": list(users),
        "num_samples": [len(y) for _, y in users.values()],
        "user_data": {user: {"x": x, "y": y} for user, (x, y) in users.items()},
    }
    file.write_text(json.dumps(content))


def drawing(shade: int) -> list[float]:
    """28 × 28 pixels from 0 to 1, white but for the second one of the first row."""
    pixels = [1.0] * 784
    pixels[1] = shade / 255
    return pixels


@pytest.fixture
def femnist(tmp_path: Path) -> Path:
    """Three writers in two training files: b with labels 3 and 50, a with 61, c with 4, 5 and 6."""
    write_leaf(tmp_path / "train/0.json", {"b": ([drawing(1), drawing(2)], [3, 50])})
    write_leaf(
        tmp_path / "train/1.json", {"a": ([drawing(3)], [61]), "c": ([drawing(4), drawing(5), drawing(6)], [4, 5, 6])}
    )
    write_leaf(tmp_path / "test/0.json", {"b": ([drawing(7)], [3]), "c": ([drawing(8)], [5]), "a": ([drawing(9)], [0])})
    return tmp_path


def test_femnist_has_bytes_for_pixels_and_users_in_sorted_order(femnist: Path) -> None:
    dataset = load("femnist", femnist)
    assert dataset.train.x.shape == (6, 28, 28, 1)
    assert dataset.train.x.dtype == np.uint8
    assert dataset.train.x[:, 0, 1, 0].tolist() == [3, 1, 2, 4, 5, 6]
    assert np.delete(dataset.train.x[4], 1, axis=1).min() == 255
    assert dataset.train.y.tolist() == [61, 3, 50, 4, 5, 6]
    assert dataset.train.columns["user"].tolist() == [0, 1, 1, 2, 2, 2]
    assert dataset.test.columns["user"].tolist() == [0, 1, 2]
    assert dataset.test.x[:, 0, 1, 0].tolist() == [9, 7, 8]
    assert dataset.num_classes == 62


@pytest.mark.parametrize("pixel", [255.0, -0.1, float("nan")])
def test_pixels_beyond_the_range_are_refused(femnist: Path, pixel: float) -> None:
    write_leaf(femnist / "train/2.json", {"d": ([[pixel, *drawing(1)[1:]]], [1])})
    with pytest.raises(ValueError, match=rf"2.json' must be .* pixels must be from 0 to 1, got {pixel}"):
        load("femnist", femnist)


def test_files_of_systems_are_not_read_and_labels_are_whole(femnist: Path) -> None:
    known = len(load("femnist", femnist).train)
    (femnist / "train/._of_a_system.json").write_bytes(b"\x00\x05")
    write_leaf(femnist / "train/more.JSON", {"zoe": ([drawing(1)], [1])})
    assert len(load("femnist", femnist).train) == known + 1
    write_leaf(femnist / "train/more.JSON", {"zoe": ([drawing(1)], [1.7])})  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"user 'zoe' has a label 1.7, which is not a whole number"):
        load("femnist", femnist)


def test_a_user_is_in_one_file(femnist: Path) -> None:
    write_leaf(femnist / "train/2.json", {"a": ([drawing(1)], [1])})
    with pytest.raises(ValueError, match=r"2.json' must be .* user 'a' is in another file, too"):
        load("femnist", femnist)


def test_only_the_first_labels_may_be_used_and_who_has_none_is_left_out(femnist: Path) -> None:
    dataset = load("femnist", femnist, labels=40)
    assert dataset.train.y.tolist() == [3, 4, 5, 6]
    assert dataset.train.columns["user"].tolist() == [1, 2, 2, 2]  # writer a has a test sample of these labels
    assert dataset.num_classes == 40


def test_each_client_is_a_user_and_tests_on_its_own_test_samples(femnist: Path) -> None:
    data = DATA.validate_python({"name": "femnist", "path": str(femnist), "clients": 2})
    federation = federate(data, NoServerData(), seed=0)
    assert federation.samples.tolist() == [1, 2]  # writers a and b
    for client, (trained, tested) in enumerate([([3], [9]), ([1, 2], [7])]):
        split, rows = federation.local_test(client)
        assert federation.train.x[federation.train_rows(client), 0, 1, 0].tolist() == trained
        assert split.x[rows, 0, 1, 0].tolist() == tested
    assert federation.test.x[federation.evaluation_rows, 0, 1, 0].tolist() == [9, 7]  # nothing of c, who is no client


def test_some_users_are_drawn_the_same_ones_each_time(femnist: Path) -> None:
    dataset, again = (load("femnist", femnist, users=2) for _ in range(2))
    assert len(set(dataset.train.columns["user"])) == 2
    assert set(dataset.test.columns["user"]) == set(dataset.train.columns["user"])
    np.testing.assert_array_equal(dataset.train.x, again.train.x)
    with pytest.raises(ValueError, match="`users` must be at most 3, got 4; lower it"):
        load("femnist", femnist, users=4)


@pytest.mark.parametrize("label", [-1, 62])
def test_labels_that_femnist_has_not_are_an_error(femnist: Path, label: int) -> None:
    write_leaf(femnist / "train/2.json", {"d": ([drawing(1)], [label])})
    with pytest.raises(ValueError, match=f"labels must be from 0 to 61, got {label}; correct the files"):
        load("femnist", femnist, labels=10)


def test_of_all_data_a_share_of_each_users_samples_tests(tmp_path: Path) -> None:
    users: Users = {
        user: ([drawing(10 * i + j) for j in range(10)], list(range(10))) for i, user in enumerate(["a", "b"])
    }
    write_leaf(tmp_path / "all_data/all_data_0.json", users)
    dataset, again = (load("femnist", tmp_path, test_share=0.3) for _ in range(2))
    for user in (0, 1):
        shades = [split.x[split.columns["user"] == user, 0, 1, 0].tolist() for split in (dataset.train, dataset.test)]
        assert [len(of_split) for of_split in shades] == [7, 3]
        assert sorted(shades[0] + shades[1]) == list(range(10 * user, 10 * user + 10))
    np.testing.assert_array_equal(dataset.test.x, again.test.x)


@pytest.fixture
def celeba(tmp_path: Path) -> Path:
    """Two celebrities with two photographs each, and one that tests; every pixel has the file's number."""
    (tmp_path / "raw/img_align_celeba").mkdir(parents=True)
    for i in range(6):
        image = Image.fromarray(np.full((22, 18, 3), 10 * i, np.uint8))
        image.save(tmp_path / f"raw/img_align_celeba/{i:06}.jpg", quality=95)
    write_leaf(tmp_path / "train/0.json", {"9": (["000000.jpg", "000001.jpg"], [0, 1]), "5": (["000002.jpg"], [1])})
    write_leaf(tmp_path / "test/0.json", {"9": (["000003.jpg"], [1]), "5": (["000004.jpg"], [0])})
    return tmp_path


def test_celeba_images_are_decoded_and_resized(celeba: Path) -> None:
    dataset = load("celeba", celeba, size=8)
    assert dataset.train.x.shape == (3, 8, 8, 3)
    assert dataset.train.x[:, 4, 4].tolist() == [[20] * 3, [0] * 3, [10] * 3]
    assert dataset.train.y.tolist() == [1, 0, 1]
    assert dataset.test.x[:, 0, 0, 0].tolist() == [40, 30]
    assert load("celeba", celeba).train.x.shape[1:] == (84, 84, 3)
    assert dataset.num_classes == 2


def test_a_celeba_image_that_is_missing_or_damaged_is_named(celeba: Path) -> None:
    path = celeba / "raw/img_align_celeba/000001.jpg"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"000001.jpg' must be a whole image.*fetch it again"):
        load("celeba", celeba)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"the image '000001.jpg' must be in .*img_align_celeba', but is not"):
        load("celeba", celeba)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "JSONDecodeError"),
        ('{"users": []}', "KeyError: 'user_data'"),
        ('{"user_data": {"a": {"x": [[0]], "y": []}}}', "ValueError"),
        ('{"user_data": {"a": {"y": []}}}', "KeyError: 'x'"),
    ],
)
def test_files_that_are_not_leafs_are_errors(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train/0.json").write_text(content)
    with pytest.raises(ValueError, match=rf"0.json' must be a whole JSON file as LEAF writes it.*{complaint}"):
        load("femnist", tmp_path)


@pytest.mark.parametrize("name", ["femnist", "celeba"])
def test_a_folder_without_files_is_an_error_with_the_cure(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"must have JSON files in `train` and `test`, or in `all_data`, but"):
        load(name, tmp_path / "nowhere")


def test_files_that_are_divided_by_user_lead_to_a_run_as_they_are_advised(tmp_path: Path) -> None:
    """As LEAF's `-t user` writes them: no user of the test samples trains."""
    users = {f"u{i}": ([drawing(i), drawing(i + 1)], [i, i + 1]) for i in range(6)}
    write_leaf(tmp_path / "train/0.json", {user: users[user] for user in ("u0", "u1", "u2", "u3")})
    write_leaf(tmp_path / "test/0.json", {user: users[user] for user in ("u4", "u5")})
    block = {"name": "femnist", "path": str(tmp_path), "clients": 4}
    with pytest.raises(ValueError, match=r"data.local_test: .*for .test.; take a share, such as 0.2"):
        federate(DATA.validate_python(block), NoServerData(), 0)
    assert len(federate(DATA.validate_python(block | {"local_test": 0.2}), NoServerData(), 0).evaluation_rows) == 4
