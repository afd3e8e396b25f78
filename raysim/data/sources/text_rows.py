"""Rows of texts: in Parquet, JSON lines, CSV and text files, of LEAF and TensorFlow Federated, or in a folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.data.sources.hdf5 import read_clients
from raysim.data.sources.huggingface import read_splits
from raysim.data.sources.image_folder import TEST, TRAIN
from raysim.data.sources.reading import all_matching, files_below, reading
from raysim.data.sources.rows import Cells, Rows, joined, read_file
from raysim.data.sources.subset import is_chosen
from raysim.parts.errors import BadValue
from results.location import is_local, location, require_file

if TYPE_CHECKING:
    import pyarrow as pa

TEXT = (".txt", ".text", ".md")
_OF_A_FOLDER = ("readme", "license")  # names of texts about the others
_ADDED = ("<BOS>", "<EOS>", "<PAD>")  # by LEAF, to comments of Reddit
_SAVED = ("dataset_dict.json", "dataset_info.json", "state.json")


def read_rows(path: str, test_path: str | None, cells: Cells, share: float = 1.0) -> tuple[Rows, Rows | None]:
    """Returns the training rows, and the test rows if they are apart.

    path: a file, a pattern, or a folder: of `save_to_disk`, or with files whose names tell the split, such as
    data/train-00000-of-00002.parquet. share: of the users, whose rows are read, where files have rows by user; rows
    then count among these. Raises FileNotFoundError or ValueError, saying what to do.
    """

    def read(key: str, files: list[str]) -> Rows:
        return joined(key, files, [_table(key, file, cells, share) for file in files])

    folder = location(path).expanduser()
    tests = None if test_path is None else read("test_path", all_matching("test_path", (test_path,)))
    if not (is_local(folder) and folder.is_dir()):
        return read("path", all_matching("path", (path,))), tests
    if share == 1 and any((folder / name).is_file() for name in _SAVED):
        train, of_test = _saved(path)
        return train, tests or of_test
    files, of_tests, unused = _by_name(Path(str(folder)))
    return read("path", files)._replace(unused=unused), tests or (read("path", of_tests) if of_tests else None)


def _table(key: str, file: str, cells: Cells, share: float) -> pa.Table:
    import pyarrow as pa

    kind = Path(file).name.lower()
    if kind.endswith(".h5"):
        return _of_clients(file, share)
    if kind.endswith(".json") and (of_users := _of_users(file, share)) is not None:
        return of_users
    if share < 1:
        text = f"must be 1 unless files are LEAF's or TensorFlow Federated's, got {share} for {file!r}"
        raise BadValue(f"{text}; leave it out, or take rows away", "user_share")
    if not kind.endswith(TEXT):
        return read_file(key, file, cells)
    with reading(file, "a text in UTF-8", "write it again, in UTF-8"):
        text = require_file(location(file)).read_text(encoding="utf-8-sig")  # which leaves out the mark of UTF-8
        return pa.table({"text": [text], "file": [Path(file).stem]})


def _of_users(file: str, share: float) -> pa.Table | None:
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
            if is_chosen(user, share)
            for x, y in zip(samples["x"], samples["y"], strict=True)
        ]
        if not rows:
            raise ValueError("no user that is used has a sample")
        return pa.Table.from_pylist(rows)


def _label_of(y: Any) -> dict[str, Any]:
    """Returns the columns that a label of LEAF fills."""
    return (
        {name: one for name, one in y.items() if not isinstance(one, list)}
        if isinstance(y, dict)
        else {"label": str(y)}
    )


def _of_clients(file: str, share: float) -> pa.Table:
    """Returns the samples of an HDF5 file of TensorFlow Federated, with a column `user` beside its own."""
    import pyarrow as pa

    clients = list(read_clients(file, share))
    if not clients:
        cure = "fetch it again" if share == 1 else "raise `user_share`"
        raise BadValue(f"{file!r} must have samples of clients under `examples`, got none; {cure}", "path")
    columns = {name: [value for _, held in clients for value in held[name].tolist()] for name in clients[0][1]}
    users = [user for user, held in clients for _ in next(iter(held.values()))]
    return pa.table({**columns, "user": users})


def _text_of(x: str | list[Any]) -> str:
    if isinstance(x, str):
        return x
    if isinstance(x[0], list):
        return " ".join(word for sequence in x for word in sequence if word not in _ADDED)
    return str(x[4])


def _saved(path: str) -> tuple[Rows, Rows | None]:
    splits = read_splits(path, None)
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


def _by_name(folder: Path) -> tuple[list[str], list[str], tuple[str, ...]]:
    """Returns the training and the test files of a folder whose names tell their split, or of which each is a text; and
    the splits that are not used."""
    files = files_below(folder)
    names = {"train": TRAIN, "test": TEST[:2], **{name: (name,) for name in TEST[2:]}}
    found = {split: [file for file in files if _is_of(file.relative_to(folder), some)] for split, some in names.items()}
    if found["train"]:
        chosen = {split: [str(file) for file in some if file.suffix] for split, some in found.items() if some}
        train, tests = chosen.pop("train"), [*chosen]
        return train, chosen[tests[0]] if tests else [], tuple(f"split {name!r}" for name in tests[1:])
    alone = [file for file in files if file.name.lower().endswith(TEXT) and file.stem.lower() not in _OF_A_FOLDER]
    if not alone:
        must = (
            "must be a folder of `save_to_disk`, with files such as train.parquet, .jsonl or .csv, or with .txt files"
        )
        raise BadValue(f"{must}, got {[file.name for file in files][:5]!r} in {str(folder)!r}; name the file", "path")
    return [*map(str, alone)], [], ()


def _is_of(file: Path, splits: tuple[str, ...]) -> bool:
    """Whether a file's name or one of its folders says that it belongs to a split, as stackoverflow_train.h5 does."""
    name, folders = file.name.lower(), [part.lower() for part in file.parts[:-1]]
    words = () if name.endswith(TEXT) else re.split(r"[^a-z]", Path(name).stem)  # notes_on_a_train.txt is a text
    first = re.match("[a-z]*", name)[0]  # type: ignore[index]  # which may be empty
    if splits[0] in ("train", "test") and name.startswith(splits[0]):
        return True
    return not {first, *words, *folders}.isdisjoint(splits)
