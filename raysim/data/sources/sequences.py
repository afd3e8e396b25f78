"""Tokens of texts as samples: padded or packed, with the label of each place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from raysim.data.dataset import IGNORED
from raysim.data.meaning import NamedArrays
from raysim.data.sources.reading import kept
from raysim.data.sources.tokenizers import Tokens
from raysim.parts.errors import BadValue


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
