"""Plays, divided by role (McMahan et al., Communication-Efficient Learning of Deep Networks, AISTATS 2017)."""

from pathlib import Path
from typing import Any, Literal

import numpy as np

from raysim.data.dataset import Dataset
from raysim.data.leaf import Samples, as_splits, read_users
from raysim.data.partition import Iid, Natural
from raysim.data.pool import Partition, PooledData, Share
from raysim.data.text import VOCABULARY, encode, roles, windows
from raysim.part import Count, Fraction


class Shakespeare(PooledData):
    """Shakespeare's plays by role: the next character is predicted, of 90.

    A sample is a window of ids (`raysim.data.text`). What a role says is one text, in order of appearance; its first
    part trains and its last part tests, and roles without a window in either are left out. A role has the same name in
    every play.
    """

    name: str = "shakespeare"
    path: str
    """A text file, in which each speech is a line SPEAKER: and what is said, with an empty line after it; or a folder
    with LEAF's JSON files in `train` and `test`, where windows are divided already."""
    targets: Literal["every", "next"] = "every"
    """What is predicted: the character after every one of the window, or only the one next to it."""
    length: Count = 80
    """Characters that are read in a window."""
    stride: Count | None = None
    """Of a text file: characters from one window to the next. null: `length`, so that each character is read once."""
    test_share: Share = 0.2
    """Of a text file: share of each role's text that tests."""
    min_samples: Count = 1
    """Training windows that a role must have."""
    partition: Partition = Natural()
    """By default, each client is a role."""
    local_test: Fraction | Literal["test"] = "test"
    """What a client tests its own model on: its own test windows (`test`), or a share of its training windows."""

    @property
    def classes(self) -> int:
        return VOCABULARY

    def load(self) -> Dataset:
        """x: ids, int16 (n, length). y: ids, int64 (n, length) of every character's next, or (n,) of the last one's."""
        path = Path(self.path).expanduser()
        if not path.exists():
            raise FileNotFoundError(
                f"data shakespeare: {str(path.absolute())!r} must be a text file, or a folder of LEAF's, but is not "
                "there; put it there, or correct `path`"
            )
        train, test = self._read_leaf(path) if path.is_dir() else self._read_text(path)
        known = [role for role in train.keys() & test.keys() if len(train[role][1]) >= self.min_samples]
        if not known:
            raise ValueError(
                f"data shakespeare: {str(path)!r} must have a role with {self.min_samples} training windows and a test "
                f"window of {self.length} characters, got none; lower `length` or `min_samples`"
            )
        of_known = ({role: split[role] for role in known} for split in (train, test))
        return Dataset(*as_splits(*of_known), num_classes=VOCABULARY)

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
            raise FileNotFoundError(
                f"data shakespeare: {str(folder.absolute())!r} must have JSON files in `train` and `test`, but has "
                "none; make them with LEAF's preprocess.sh -t sample, or correct `path`"
            )
        return train, test

    def _convert(self, x: list[Any], y: list[Any]) -> Samples:
        """x: texts of `length` characters. y: the character after each."""
        if odd := [text for text in x if len(text) != self.length]:
            raise ValueError(f"x must be texts of `length` {self.length}, got one of {len(odd[0])}: {odd[0]!r}")
        ids = encode("".join(text + following for text, following in zip(x, y, strict=True)))
        return self._samples(ids.reshape(len(x), self.length + 1))

    def _samples(self, found: np.ndarray) -> Samples:
        """found: windows (n, length + 1)."""
        targets = found[:, 1:] if self.targets == "every" else found[:, -1]
        return found[:, :-1].copy(), targets.astype(np.int64)

    def problems(self) -> list[str]:
        if self.targets == "every" and not isinstance(self.partition, Natural | Iid):
            name = self.partition.name
            return [f"partition {name}: needs a label for each sample, got `targets: every`; take natural or iid"]
        return super().problems()
