"""Texts before they are a data set: as rows of files of all kinds, and as samples of tokens, padded or packed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.data.dataset import IGNORED
from raysim.data.meaning import NamedArrays
from raysim.data.sources.huggingface import read_splits
from raysim.data.sources.image_folder import TEST
from raysim.data.sources.reading import all_matching, kept, reading
from raysim.data.sources.rows import Cells, Rows, joined, read_file
from raysim.data.sources.tokenizers import Tokens
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


@dataclass(frozen=True)
class Sequences:
    """Samples of different lengths. A sample of a causal model has a label for each token: the token after it."""

    tokens: list[np.ndarray]  # int32 (length,) each
    targets: list[np.ndarray]  # int64 (length,) each, with -100 where nothing is predicted; [] where none are
    columns: dict[str, np.ndarray]  # (samples,) each
    padding: int
    packed: bool = False
    notes: tuple[str, ...] = field(default=())

    @property
    def width(self) -> int:
        """Length of the longest one."""
        return max(map(len, self.tokens))

    def labels(self, width: int) -> np.ndarray:
        """Returns the labels of all places, int64 (samples, width)."""
        return _padded(self.targets, width, IGNORED, np.int64)

    def inputs(self, width: int) -> Any:
        """Returns what a model takes: padded tokens, int32 (samples, width), and which places hold some, bool (samples,
        width); or tokens alone where they are packed, because then all places do."""
        ids, lengths = _padded(self.tokens, width, self.padding, np.int32), np.array(list(map(len, self.tokens)))
        mask = np.arange(width) < lengths[:, None]
        return ids if self.packed else NamedArrays({"input_ids": ids, "attention_mask": mask})


def arranged(
    tokens: Tokens,
    texts: Sequence[tuple[str, str]],
    columns: dict[str, np.ndarray],
    place: Callable[[int], str],
    *,
    length: int,
    pack: bool = False,
    answers: bool = False,
    causal: bool = False,
) -> Sequences:
    """Returns the samples of texts, each with its answer or with "".

    columns: values of the rows. place: says where a row is, for errors. length: most tokens of a sample. pack: whether
    texts are joined. answers: whether only answers are predicted. causal: whether each place predicts the next token.
    Raises ValueError for a text without tokens, and for an answer that is too long.
    """
    questions = _encoded(tokens, [question for question, _ in texts])
    replies = _encoded(tokens, [answer for _, answer in texts]) if answers else [questions[0][:0]] * len(texts)
    end = () if tokens.end is None or not causal else (tokens.end,)
    pairs, cut = [], 0
    for row, (question, answer) in enumerate(zip(questions, replies, strict=True)):
        if len(answer if answers else question) == 0:
            what = "an answer" if answers else "a text"
            raise BadValue(f"{place(row)} must have {what} of a token or more, got none; fill it, or drop the row")
        before, after = tokens.prefix, () if causal else tokens.suffix
        room = length + causal - len(before) - len(after)  # the last token of a causal sample is a label
        whole = np.concatenate([question, answer, end]).astype(np.int32)
        start = len(before) + len(question) if answers else 0
        if len(whole) > room and not pack:
            cut += 1
            if answers:
                if len(answer) + len(end) >= room:
                    must = f"must have an answer of fewer tokens than data.length, {length}, got {len(answer)}"
                    raise BadValue(f"{place(row)} {must}; raise `length`, or drop the row", "length")
                start -= len(whole) - room
                whole = whole[-room:]
            whole = whole[:room]
        pairs.append((np.concatenate([before, whole, after]).astype(np.int32), start))
    notes = (f"data.length: {cut} of {len(texts)} texts have more than {length} tokens, and are cut",) * bool(cut)
    if pack:
        return _packed(pairs, length, columns)
    if not causal:
        return Sequences([ids for ids, _ in pairs], [], columns, tokens.padding, notes=notes)
    for short in (row for row, (ids, _) in enumerate(pairs) if len(ids) < 2):
        raise BadValue(f"{place(short)} must have two tokens, so that one predicts the other, got one; drop the row")
    targets = [_next(ids, start) for ids, start in pairs]
    return Sequences([ids[:-1] for ids, _ in pairs], targets, columns, tokens.padding, notes=notes)


def _next(ids: np.ndarray, start: int) -> np.ndarray:
    """Returns the label of each token but the last one: the one after it, from `start` on."""
    following = ids[1:].astype(np.int64)
    following[: max(start - 1, 0)] = IGNORED
    return following


def _packed(pairs: list[tuple[np.ndarray, int]], length: int, columns: dict[str, np.ndarray]) -> Sequences:
    """Joins the texts that have the same values in all columns, in order, and cuts them into samples."""
    keys = np.stack([np.unique(values, return_inverse=True)[1] for values in columns.values()]) if columns else None
    group = np.zeros(len(pairs), np.int64) if keys is None else np.unique(keys, axis=1, return_inverse=True)[1].ravel()
    found, targets, first = [], [], []
    for number in range(int(group.max()) + 1):
        rows = np.flatnonzero(group == number)
        ids = np.concatenate([pairs[row][0] for row in rows])
        # The first token of a text follows the end of another one, and is predicted like all others.
        known = [np.arange(len(pairs[row][0])) >= pairs[row][1] for row in rows]
        labels = np.where(np.concatenate(known), ids, IGNORED).astype(np.int64)
        for at in range(0, len(ids) - length, length):
            if (labels[at + 1 : at + length + 1] != IGNORED).any():
                found.append(ids[at : at + length])
                targets.append(labels[at + 1 : at + length + 1])
                first.append(rows[0])
    if not found:
        raise BadValue(f"must leave a sample of {length} tokens, got none with `pack`; lower it", "length")
    of_samples = {name: values[np.array(first)] for name, values in columns.items()}
    return Sequences(found, targets, of_samples, 0, packed=True)


def _encoded(tokens: Tokens, texts: list[str]) -> list[np.ndarray]:
    """Returns the tokens of each text, from the cache if they are there."""
    if not texts or tokens.named is None:
        return tokens.encode(texts)

    def make() -> np.ndarray:
        found = tokens.encode(texts)
        return np.concatenate([np.array([len(one) for one in found], np.int32), *found]).astype(np.int32)

    flat = kept("tokens", [tokens.named, *(text.encode(errors="replace") for text in texts)], make)
    return np.split(flat[len(texts) :], np.cumsum(flat[: len(texts)])[:-1])


def _padded(some: list[np.ndarray], width: int, value: int, kind: Any) -> np.ndarray:
    whole = np.full((len(some), width), value, dtype=kind)
    for row, one in enumerate(some):
        whole[row, : len(one)] = one[:width]
    return whole
