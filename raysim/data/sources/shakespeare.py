"""Plays, divided by role (McMahan et al., Communication-Efficient Learning of Deep Networks, AISTATS 2017)."""

import re
from pathlib import Path
from string import ascii_letters, digits
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from pydantic import Field

from raysim.data.dataset import Dataset, first
from raysim.data.federation.partition import Natural
from raysim.data.sources.leaf import Samples, as_splits, read_users
from raysim.data.sources.source import LocalTest, Partition, Share, Source
from raysim.parts.errors import BadValue, MissingFile
from raysim.parts.part import Count, Unit
from raysim.terms import Inputs
from results.location import location

# Ids: 0 is padding, which no window has; 1 begins a speech and 2 ends it; 3 to 88 are the characters below; 89 is any
# other character. TensorFlow Federated and FedJAX use these 86 characters for Shakespeare, with ids in another order.
CHARACTERS = "\n\r !\"#$%&'()*,-./:;?@[]_" + digits + ascii_letters
BEGIN, END, UNKNOWN = 1, 2, 89
VOCABULARY = 90

_IDS = np.full(128 + 1, UNKNOWN, dtype=np.int16)  # by code point; the last entry is for all code points from 128 on
_IDS[[ord(character) for character in CHARACTERS]] = np.arange(3, UNKNOWN)


def encode(text: str) -> np.ndarray:
    """Returns the ids of a text, int16 (characters,)."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    ids: np.ndarray = _IDS[np.minimum(points, 128)]
    return ids


def roles(text: str) -> dict[str, np.ndarray]:
    """Returns the ids of what each role says, in order of appearance: BEGIN, a speech, END, BEGIN, and so on.

    A speech starts with a line SPEAKER:, at the start of the text or after an empty line. {} if there are no speeches.
    """
    _, *parts = re.split(r"(?:\A|(?<=\n\n))([^\n]+):\n", text)
    said: dict[str, list[np.ndarray]] = {}
    for speaker, speech in zip(parts[::2], parts[1::2], strict=True):
        said.setdefault(speaker, []).append(np.concatenate([[BEGIN], encode(speech.strip("\n")), [END]]))
    return {role: np.concatenate(speeches).astype(np.int16) for role, speeches in said.items()}


def windows(ids: np.ndarray, length: int, stride: int) -> np.ndarray:
    """Returns windows (n, length + 1): one starts every `stride` ids, and only whole ones count."""
    if len(ids) <= length:
        return ids[:0].reshape(0, length + 1)
    return sliding_window_view(ids, length + 1)[::stride]


class Shakespeare(Source):
    """Shakespeare's plays, divided by role; models predict the next of 90 characters.

    A sample is a window of ids (see `raysim.data.sources.shakespeare`). All that a role says is one text, in order of
    appearance: its first part is for training and the rest for testing. A role that lacks windows for one of them is
    left out. Roles of one name in different plays are one role.
    """

    classes: ClassVar[int] = VOCABULARY

    name: str = "shakespeare"
    path: Annotated[str, Field(examples=["data/shakespeare"])]
    """A text file, in which a speech is a line SPEAKER:, the lines spoken, and an empty line; or a folder with LEAF's
    JSON files in `train` and `test`, which hold windows."""
    targets: Literal["every", "next"] = "every"
    """What is predicted. every: the character after each character of a window. next: only the one after the window."""
    length: Annotated[Count, Unit("tokens")] = 80
    """Number of characters of a window that the model reads."""
    stride: Count | None = None
    """Characters from the start of a window to that of the next. null: `length`, so that each character is read once.
    For text files only."""
    test_share: Share = 0.2
    """Share of each role's text that is for testing. For text files only."""
    min_samples: Annotated[Count, Unit("samples")] = 1
    """Number of training windows that a role must have; roles with fewer are left out."""
    partition: Partition = Natural()
    local_test: LocalTest = "test"

    holds: ClassVar[tuple[Inputs, ...]] = ("text",)

    @property
    def divisible_by(self) -> tuple[str, ...]:
        return ("user",) if self.targets == "every" else ("label", "user")

    def load(self) -> Dataset:
        """Loads the windows. x: ids, int16 (n, length). y: ids of what is predicted, int64, (n, length) or (n,)."""
        path = location(self.path).expanduser()
        if not path.exists():
            text = f"{str(path.absolute())!r} must be a text file, or a folder of LEAF's, but is not there"
            raise MissingFile(f"{text}; put it there, or correct `path`")
        train, test = self._read_leaf(path) if path.is_dir() else self._read_text(path)
        both = train.keys() & test.keys()
        if path.is_dir() and not both:
            text = f"{str(path)!r} must have a role in `train` that is in `test` too, got none, as LEAF divides by user"
            raise BadValue(f"{text}; make them again with preprocess.sh -t sample")
        known = [role for role in both if len(train[role][1]) >= self.min_samples]
        if not known:
            text = f"{str(path)!r} must have a role with {self.min_samples} training windows and a test window"
            raise BadValue(f"{text} of {self.length} characters, got none; lower `length` or `min_samples`")
        of_train, of_test = as_splits(*({role: split[role] for role in known} for split in (train, test)))
        of_train, of_test = (
            first(of_train, self.train_samples, "train_samples"),
            first(of_test, self.test_samples, "test_samples"),
        )
        return Dataset(of_train, of_test, num_classes=VOCABULARY)

    def _read_text(self, path: Path) -> tuple[dict[str, Samples], dict[str, Samples]]:
        text = path.read_text(encoding="utf-8", errors="replace")
        train: dict[str, Samples] = {}
        test: dict[str, Samples] = {}
        for role, ids in roles(text).items():
            cut = round(len(ids) * (1 - self.test_share))
            for split, part in ((train, ids[:cut]), (test, ids[cut:])):
                found = windows(part, self.length, self.stride or self.length)
                if len(found):
                    split[role] = self._samples(found)
        return train, test

    def _read_leaf(self, folder: Path) -> tuple[dict[str, Samples], dict[str, Samples]]:
        train, test = (read_users(folder / name, self._convert) for name in ("train", "test"))
        if not (train and test):
            text = f"{str(folder.absolute())!r} must have JSON files in `train` and `test`, but has none"
            raise MissingFile(f"{text}; make them with LEAF's preprocess.sh -t sample, or correct `path`")
        return train, test

    def _convert(self, x: list[Any], y: list[Any]) -> Samples:
        """Takes texts of `length` characters as x, and as y the character after each."""
        if odd := [text for text in x if len(text) != self.length]:
            raise ValueError(f"x must be texts of `length` {self.length}, got one of {len(odd[0])}: {odd[0]!r}")
        ids = encode("".join(text + following for text, following in zip(x, y, strict=True)))
        return self._samples(ids.reshape(len(x), self.length + 1))

    def _samples(self, found: np.ndarray) -> Samples:
        """Makes samples of windows (n, length + 1)."""
        targets = found[:, 1:] if self.targets == "every" else found[:, -1]
        return found[:, :-1].copy(), targets.astype(np.int64)
