"""`raysim check --data FILE --propose` guesses, says why, and what it proposes loads."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import command
from image_files import write_image

from results.keys import parse

DRAW = np.random.default_rng(0)
Y = np.arange(60) % 3
MASKS = np.where(DRAW.random((60, 5, 6)) < 0.1, 255, DRAW.integers(2, size=(60, 5, 6)))


def proposed(path: Path, *words: str) -> tuple[dict[str, Any], str]:
    """The keys of the block, and all that is printed."""
    answer = command(*(words or ("check", "--data", "--propose")), path)
    assert answer.exit_code == 0, answer.stderr
    return parse(answer.stdout)["data"], answer.stdout


def test_a_table_gets_its_delimiter_decimals_label_owner_and_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": np.arange(60) + 7, "site": Y, "city": np.array(list("abc"))[Y], "size": Y / 2})
    frame.assign(price=DRAW.standard_normal(60)).to_csv(tmp_path / "t.csv", sep=";", decimal=",")
    keys, text = proposed(tmp_path / "t.csv")
    assert keys == {
        "name": "table",
        "path": str(tmp_path / "t.csv"),
        "delimiter": ";",
        "decimal": ",",
        "label": "price",
        "task": "regression",
        "exclude": ["", "id"],
        "categorical": ["city"],
        "clients": "site",
    }
    assert "# x: features (4,) (city=a, city=b, city=c, size)" in text
    assert "# the last column; correct it if another is predicted" in text


def test_commas_of_thousands_are_no_decimal_commas(tmp_path: Path) -> None:
    rows = "".join(f"{1000 + 37 * row:,};{row % 9};{row % 2}\n" for row in range(80))
    (tmp_path / "t.csv").write_text(f"income;age;y\n1,950;1;1\n{rows}")
    keys, text = proposed(tmp_path / "t.csv")
    assert "decimal" not in keys and keys["exclude"] == ["income"]
    assert "such as '1,950'" in text


def test_numbers_that_differ_in_each_row_are_features_if_no_others_are_left(tmp_path: Path) -> None:
    pd.DataFrame({"pay": 1000 + 37 * np.arange(60), "user": Y, "y": Y}).to_csv(tmp_path / "t.csv")
    keys, text = proposed(tmp_path / "t.csv")
    assert keys["exclude"] == [""] and "# x: features (1,) (pay)" in text


def test_two_columns_of_one_name_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,a,y\n" + "1,2,0\n3,4,1\n" * 10)
    answer = command("check", "--data", "--propose", tmp_path / "t.csv")
    assert answer.exit_code == 2 and "must have one column of each name used, got 2 columns 'a'" in answer.stderr


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (DRAW.standard_normal((60, 12, 4)), Y.astype(float), {"inputs": "series", "task": "classes"}),
        (DRAW.integers(255, size=(60, 8, 8), dtype=np.uint8), Y, {"inputs": "images_first"}),
        (DRAW.integers(5000, size=(60, 9)), Y, {"inputs": "tokens"}),
        (DRAW.standard_normal((60, 3, 5, 6)), MASKS, {"task": "classes"}),
        (DRAW.standard_normal((60, 3)), DRAW.standard_normal(60), {"task": "regression"}),
        (DRAW.standard_normal((60, 3)), (DRAW.random((60, 4)) < 0.5).astype(int), {"task": "multi_label"}),
    ],
)
def test_arrays_get_what_no_rule_says(tmp_path: Path, x: np.ndarray, y: np.ndarray, expected: Any) -> None:
    np.savez(tmp_path / "a.npz", x=x, y=y, user=Y)
    keys, text = proposed(tmp_path / "a.npz")
    assert {key: keys[key] for key in expected} == expected
    assert keys["clients"] == "user"
    assert "# x: " in text and "does not load" not in text
    assert ("ignore" in keys) == (y.ndim == 3)


def test_a_folder_is_what_most_of_its_files_are(tmp_path: Path) -> None:
    for label in "ab":
        for place in range(3):
            write_image(tmp_path / "pictures" / label / f"{place}.png", 50 * place)
    keys, text = proposed(tmp_path / "pictures", "new", "data")
    assert (keys["name"], keys["size"]) == ("image_folder", 32)
    assert "# x: images (3, 32, 32) of uint8" in text
    for owner in ("ann", "bob"):
        for label in "ab":
            write_image(tmp_path / "owners" / owner / label / "0.png", 50)
    keys, text = proposed(tmp_path / "owners", "new", "data")
    assert keys["clients"] == "folder" and "2 classes (a, b)" in text
    for name in ("train/0", "train/1", "test/0", "test/1"):
        (tmp_path / "clients" / name).parent.mkdir(exist_ok=True, parents=True)
        np.savez(tmp_path / "clients" / f"{name}.npz", x=DRAW.standard_normal((6, 2)), y=Y[:6])
    keys, text = proposed(tmp_path / "clients", "new", "data")
    assert (keys["name"], keys["clients"]) == ("client_files", "file") and "# x: features (2,)" in text
    (tmp_path / "tables").mkdir()
    for place in range(2):
        pd.DataFrame({"a": Y / 2, "b": Y}).to_csv(tmp_path / "tables" / f"{place}.csv", sep=";", index=False)
    keys, text = proposed(tmp_path / "tables", "new", "data")
    assert (keys["name"], keys["delimiter"], keys["label"]) == ("table", ";", "b") and "# x: features (1,)" in text
    (tmp_path / "empty").mkdir()
    assert "must be or hold pictures" in command("check", "--data", "--propose", tmp_path / "empty").stderr
