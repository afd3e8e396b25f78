"""Rows of texts: in Parquet, JSON lines, CSV and text files, of LEAF, or in a folder that `datasets` has saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.data.sources.huggingface import read_splits
from raysim.data.sources.image_folder import TEST
from raysim.data.sources.reading import all_matching, reading
from raysim.data.sources.rows import Cells, Rows, joined, read_file
from raysim.parts.errors import BadValue
from results.location import is_local, location, require_file

if TYPE_CHECKING:
    import pyarrow as pa

TEXT = (".txt", ".text", ".md")
_ADDED = ("<BOS>", "<EOS>", "<PAD>")  # by LEAF, to comments of Reddit
_SAVED = ("dataset_dict.json", "dataset_info.json", "state.json")


def read_rows(path: str, test_path: str | None, cells: Cells) -> tuple[Rows, Rows | None]:
    """Returns the training rows, and the test rows if they are apart.

    path: a file, a pattern, or a folder of `save_to_disk`. Raises FileNotFoundError or ValueError, saying what to do.
    """

    def read(key: str, pattern: str) -> Rows:
        files = all_matching(key, (pattern,))
        return joined(key, files, [_table(key, file, cells) for file in files])

    folder = location(path).expanduser()
    tests = None if test_path is None else read("test_path", test_path)
    if not (is_local(folder) and folder.is_dir()):
        return read("path", path), tests
    if not any((folder / name).is_file() for name in _SAVED):
        text = f"must be a file, a pattern or a folder of `save_to_disk`, got {path!r}"
        cure = f"name its files, such as {str(Path(path) / '*.txt')!r} or {str(Path(path) / 'train-*.parquet')!r}"
        raise BadValue(f"{text}; {cure}, and with test_path those that test", "path")
    train, of_test = _saved(path)
    return train, tests or of_test


def _table(key: str, file: str, cells: Cells) -> pa.Table:
    import pyarrow as pa

    kind = Path(file).name.lower()
    if kind.endswith(".json") and (of_users := _of_users(file)) is not None:
        return of_users
    if not kind.endswith(TEXT):
        return read_file(key, file, cells)
    with reading(file, "a text in UTF-8", "write it again, in UTF-8"):
        text = require_file(location(file)).read_text(encoding="utf-8-sig")  # which leaves out the mark of UTF-8
        return pa.table({"text": [text], "file": [Path(file).stem]})


def _of_users(file: str) -> pa.Table | None:
    """Returns the samples of a JSON file of LEAF, with the columns text, label and user; None if it is another file.

    A text is what LEAF has as x: itself; of Sent140, the fifth entry of a row; or, of Reddit, the words of a comment's
    sequences without those that LEAF adds. Reddit has what it tells of a comment, such as its subreddit, in place of a
    label.
    """
    import pyarrow as pa

    with require_file(location(file)).open("rb") as content:
        if b'"users"' not in content.read(2**12):
            return None
    with reading(
        file, "a whole JSON file of LEAF, with samples in `user_data`", "make it again with LEAF's preprocess.sh"
    ):
        by_user = json.loads(location(file).read_bytes())["user_data"]
        rows = [
            {"text": _text_of(x), "user": user, **_label_of(y)}
            for user, samples in by_user.items()
            for x, y in zip(samples["x"], samples["y"], strict=True)
        ]
        if not rows:
            raise ValueError("no user has a sample")
        return pa.Table.from_pylist(rows)


def _label_of(y: Any) -> dict[str, Any]:
    """Returns the columns that a label of LEAF fills."""
    if isinstance(y, dict):
        return {name: one for name, one in y.items() if not isinstance(one, list)}
    return {"label": str(y)}


def _text_of(x: str | list[Any]) -> str:
    if isinstance(x, str):
        return x
    if isinstance(x[0], list):
        return " ".join(word for sequence in x for word in sequence if word not in _ADDED)
    return str(x[4])


def _saved(path: str) -> tuple[Rows, Rows | None]:
    splits = read_splits(path)
    names = list(splits)
    train = names[0] if len(names) == 1 else "train"
    if train not in splits:
        raise BadValue(f"must have a split `train`, got {names!r} in {path!r}; save it with that name", "path")

    def rows(name: str) -> Rows:
        table = splits[name].with_format("arrow")[:]
        return Rows(table, [(f"{path}, split {name}", table.num_rows)])

    tests = [name for name in TEST if name in splits]
    unused = tuple(f"split {name!r}" for name in names if name not in (train, *tests[:1]))
    return rows(train)._replace(unused=unused), rows(tests[0]) if tests else None
