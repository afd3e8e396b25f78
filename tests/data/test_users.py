"""Samples by user: LEAF's JSON files, and folders with a file for each client, whose pickles may run no code."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import digits
from data_sets import DATA, load
from PIL import Image

import raysim
from raysim.data import Dataset, federate
from raysim.data.federation.server import NoServerData

# --- LEAF's files -----------------------------------------------------------------------------------------------------


Users = dict[str, tuple[list[Any], list[Any]]]


def load_users(name: str, path: Path, clients: int = 1, **settings: Any) -> Dataset:
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
    dataset = load_users("femnist", femnist)
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
        load_users("femnist", femnist)


def test_files_of_systems_are_not_read_and_labels_are_whole(femnist: Path) -> None:
    known = len(load_users("femnist", femnist).train)
    (femnist / "train/._of_a_system.json").write_bytes(b"\x00\x05")
    write_leaf(femnist / "train/more.JSON", {"zoe": ([drawing(1)], [1])})
    assert len(load_users("femnist", femnist).train) == known + 1
    write_leaf(femnist / "train/more.JSON", {"zoe": ([drawing(1)], [1.7])})  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"user 'zoe' has a label 1.7, which is not a whole number"):
        load_users("femnist", femnist)


def test_a_user_is_in_one_file(femnist: Path) -> None:
    write_leaf(femnist / "train/2.json", {"a": ([drawing(1)], [1])})
    with pytest.raises(ValueError, match=r"2.json' must be .* user 'a' is in another file, too"):
        load_users("femnist", femnist)


def test_only_the_first_labels_may_be_used_and_who_has_none_is_left_out(femnist: Path) -> None:
    dataset = load_users("femnist", femnist, labels=40)
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
    dataset, again = (load_users("femnist", femnist, users=2) for _ in range(2))
    assert len(set(dataset.train.columns["user"])) == 2
    assert set(dataset.test.columns["user"]) == set(dataset.train.columns["user"])
    np.testing.assert_array_equal(dataset.train.x, again.train.x)
    with pytest.raises(ValueError, match="`users` must be at most 3, got 4; lower it"):
        load_users("femnist", femnist, users=4)


@pytest.mark.parametrize("label", [-1, 62])
def test_labels_that_femnist_has_not_are_an_error(femnist: Path, label: int) -> None:
    write_leaf(femnist / "train/2.json", {"d": ([drawing(1)], [label])})
    with pytest.raises(ValueError, match=f"labels must be from 0 to 61, got {label}; correct the files"):
        load_users("femnist", femnist, labels=10)


def test_of_all_data_a_share_of_each_users_samples_tests(tmp_path: Path) -> None:
    users: Users = {
        user: ([drawing(10 * i + j) for j in range(10)], list(range(10))) for i, user in enumerate(["a", "b"])
    }
    write_leaf(tmp_path / "all_data/all_data_0.json", users)
    dataset, again = (load_users("femnist", tmp_path, test_share=0.3) for _ in range(2))
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
    dataset = load_users("celeba", celeba, size=8)
    assert dataset.train.x.shape == (3, 8, 8, 3)
    assert dataset.train.x[:, 4, 4].tolist() == [[20] * 3, [0] * 3, [10] * 3]
    assert dataset.train.y.tolist() == [1, 0, 1]
    assert dataset.test.x[:, 0, 0, 0].tolist() == [40, 30]
    assert load_users("celeba", celeba).train.x.shape[1:] == (84, 84, 3)
    assert dataset.num_classes == 2


def test_a_celeba_image_that_is_missing_or_damaged_is_named(celeba: Path) -> None:
    path = celeba / "raw/img_align_celeba/000001.jpg"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"000001.jpg' must be a whole image.*fetch it again"):
        load_users("celeba", celeba)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"the image '000001.jpg' must be in .*img_align_celeba', but is not"):
        load_users("celeba", celeba)


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
        load_users("femnist", tmp_path)


@pytest.mark.parametrize("name", ["femnist", "celeba"])
def test_a_folder_without_files_is_an_error_with_the_cure(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"must have JSON files in `train` and `test`, or in `all_data`, but"):
        load_users(name, tmp_path / "nowhere")


def test_files_that_are_divided_by_user_lead_to_a_run_as_they_are_advised(tmp_path: Path) -> None:
    """As LEAF's `-t user` writes them: no user of the test samples trains."""
    users = {f"u{i}": ([drawing(i), drawing(i + 1)], [i, i + 1]) for i in range(6)}
    write_leaf(tmp_path / "train/0.json", {user: users[user] for user in ("u0", "u1", "u2", "u3")})
    write_leaf(tmp_path / "test/0.json", {user: users[user] for user in ("u4", "u5")})
    block = {"name": "femnist", "path": str(tmp_path), "clients": 4}
    with pytest.raises(ValueError, match=r"data.local_test: .*for .test.; take a share, such as 0.2"):
        federate(DATA.validate_python(block), NoServerData(), 0)
    assert len(federate(DATA.validate_python(block | {"local_test": 0.2}), NoServerData(), 0).evaluation_rows) == 4


# --- a file for each client -------------------------------------------------------------------------------------------


def write(folder: Path, pfllib: bool, **files: tuple[list[Any], list[int]]) -> None:
    """Writes a file for each client. files: x and y by the file's name."""
    folder.mkdir(parents=True)
    for name, (x, y) in files.items():
        content = {"x": np.array(x, dtype=np.float32), "y": np.array(y)}
        saved: Any = {"data": np.array(content, dtype=object)} if pfllib else content
        np.savez_compressed(folder / f"{name.strip('_')}.npz", **saved)


@pytest.mark.parametrize("pfllib", [False, True])
def test_each_file_is_a_client_in_the_order_of_numbers(pfllib: bool, tmp_path: Path) -> None:
    rows = {"_0": ([[0, 1], [2, 3]], [0, 1]), "_2": ([[4, 5]], [1]), "_10": ([[6, 7]] * 3, [0, 0, 1])}
    write(tmp_path / "d/train", pfllib, **rows)
    write(tmp_path / "d/test", pfllib, _0=([[0, 1]], [0]), _2=([[1, 1]], [1]), _10=([], []))
    data = {"name": "client_files", "path": str(tmp_path / "d"), "clients": 3, "scale": "unit"}
    raw = digits(model="linear", algorithm="fedavg", run__rounds=1, run__evaluate_clients="all")
    raw = {**raw, "data": data, "world": {"dispatch": {"per_round": 3}}}
    scenario = raysim.parse_scenario(raw)
    loaded = scenario.data.load()
    assert loaded.train.x.tolist() == [[0, 1], [2, 3], [4, 5], *[[6, 7]] * 3]
    assert loaded.train.y.tolist() == [0, 1, 1, 0, 0, 1] and loaded.test.columns["file"].tolist() == [0, 1]
    result = raysim.run(scenario, inline=True, out=tmp_path / "runs")
    assert result.pandas("updates").sort_values("client").samples.tolist() == [2, 1, 3]


class Evil:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("touched"),)


def test_files_that_do_not_fit_are_refused_and_run_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    part = {"name": "client_files", "clients": 1}
    raw = {**digits(model="linear", algorithm="fedavg"), "world": {"dispatch": {"per_round": 1}}}

    def loaded(folder: str) -> Any:
        return raysim.parse_scenario({**raw, "data": {**part, "path": folder}}).data.load()

    write(tmp_path / "evil", False)
    np.savez(tmp_path / "evil/0.npz", data=np.array({"x": Evil()}, dtype=object))
    with pytest.raises(ValueError, match=r"evil/0.npz' must be .* names pathlib.*not an array, .*; write x and y"):
        loaded("evil")
    assert not Path("touched").exists()
    write(tmp_path / "odd", False, a=([[1]], [0]), b=([[1, 2]], [0]))
    with pytest.raises(ValueError, match=r"odd/b.npz' must have x of shape \(1,\)"):
        loaded("odd")
    np.savez(tmp_path / "odd/a.npz", x=np.ones(2), z=np.ones(2))
    with pytest.raises(ValueError, match=r"odd/a.npz' must have x and y, .*add 'y'"):
        loaded("odd")
    with pytest.raises(FileNotFoundError, match=r"must be a folder with an .npz file for each client"):
        loaded("nowhere")


@pytest.fixture
def clients(tmp_path: Path) -> Path:
    """A folder with the files of two clients, and with what systems leave."""
    for at in range(2):
        write(tmp_path / f"train/{at}", False, one=(np.arange(20.0).reshape(10, 2).tolist(), [0, 1] * 5))
        (tmp_path / f"train/{at}/one.npz").rename(tmp_path / f"train/{at}{('.npz', '.NPZ')[at]}")
        (tmp_path / f"train/{at}").rmdir()
    (tmp_path / "train/._0.npz").write_bytes(b"of a system")
    return tmp_path


def test_files_in_capital_letters_are_used_and_a_validation_folder_tests(clients: Path) -> None:
    assert len(found := load(name="client_files", path=str(clients)).train) == 16 and len({*found.columns["file"]}) == 2
    write(clients / "val", False, _0=([[1, 2]], [0]), _1=([[3, 4]], [1]))
    assert len(load(name="client_files", path=str(clients)).test) == 2
    write(clients / "test", False, _0=([[1, 2]], [0]))
    dataset = load(name="client_files", path=str(clients))
    assert len(dataset.test) == 1
    assert dataset.meaning is not None and dataset.meaning.unused == ("folder 'val'",)


@pytest.mark.parametrize(
    ("x", "y", "complaint"),
    [
        (None, np.zeros(10), "must say what y are, floats of 2 values"),
        (None, np.array(["0"] * 10), r"got int64 of '.*0.npz' and <U1 of '.*2.npz'; make them alike$"),
        (None, np.zeros((10, 2), int), r"2.npz' must have y of shape \(\), as .*0.npz' has, got \(2,\)"),
        (None, np.zeros((10, 1), np.uint64), None),
    ],
)
def test_files_of_other_kinds_are_named(clients: Path, x: Any, y: Any, complaint: str | None) -> None:
    """Without that, numpy makes one kind of all: floats of whole numbers, and texts of numbers."""
    x, y = np.ones((10, 2)) if x is None else x, np.zeros(10, int) if y is None else y
    np.savez(clients / "train/2.npz", x=x, y=y)
    if complaint is None:
        assert load(name="client_files", path=str(clients)).num_classes == 2
        return
    with pytest.raises(ValueError, match=complaint):
        load(name="client_files", path=str(clients))


def test_bytes_of_one_client_and_floats_of_another_are_refused(tmp_path: Path) -> None:
    pixels = np.arange(640).reshape(10, 8, 8) % 256
    for at, x in enumerate((pixels.astype(np.uint8), pixels / 255)):
        np.savez(tmp_path / f"{at}.npz", x=x, y=[0, 1] * 5)
    with pytest.raises(ValueError, match=r"got uint8 in '.*0.npz' and float64 in '.*1.npz'; make them alike"):
        load(name="client_files", path=str(tmp_path))
