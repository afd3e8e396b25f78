"""The JSON files of LEAF: samples by user (Caldas et al., LEAF: A Benchmark for Federated Settings, 2018)."""

import json
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from raysim.data.dataset import Dataset, Split
from raysim.data.images import Images
from raysim.data.own_test import held_out_size
from raysim.data.partition import Natural
from raysim.data.pool import Partition, Share
from raysim.part import Count, Fraction
from raysim.rng import generator

Samples = tuple[np.ndarray, np.ndarray]  # x (n, ...) and y (n, ...) of one user
Convert = Callable[[list[Any], list[Any]], Samples]


def read_users(folder: Path, convert: Convert) -> dict[str, Samples]:
    """The samples of each user in the folder's JSON files, {} if there are none.

    convert: from the lists x and y of a user, as LEAF writes them. ValueError where a file is not as LEAF's are.
    """
    users: dict[str, Samples] = {}
    for file in sorted(folder.glob("*.json")):
        try:
            by_user = json.loads(file.read_bytes())["user_data"]
            for user, samples in by_user.items():
                x, y = convert(samples["x"], samples["y"])
                if len(x) != len(y):
                    raise ValueError(f"user {user!r} has {len(x)} x and {len(y)} y")
                if len(y):
                    users[user] = (x, y)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"data: {str(file)!r} must be a whole JSON file as LEAF writes it, with x and y of each user in "
                f"`user_data`, got {type(error).__name__}: {error}; make it again with LEAF's preprocess.sh"
            ) from error
    return users


def as_splits(train: dict[str, Samples], test: dict[str, Samples]) -> tuple[Split, Split]:
    """Training and test samples, user after user, with a column `user`: a user's place in sorted order, int64."""
    place = {user: i for i, user in enumerate(sorted(train.keys() | test.keys()))}

    def split(users: dict[str, Samples]) -> Split:
        chosen = sorted(users)
        sizes = [len(users[user][1]) for user in chosen]
        user = np.repeat(np.array([place[user] for user in chosen], dtype=np.int64), sizes)
        x, y = (np.concatenate([users[user][i] for user in chosen]) for i in (0, 1))
        return Split(x, y, {"user": user})

    return split(train), split(test)


class LeafImages(Images):
    """Labelled images of many users, in the folders that LEAF makes."""

    path: str
    """LEAF's folder `data` of the data set, with `train` and `test`, or else `all_data`, in it."""
    partition: Partition = Natural()
    """By default, each client is a user."""
    local_test: Fraction | Literal["test"] = "test"
    """What a client tests its own model on: its own test samples (`test`), or a share of its training samples."""
    users: Count | None = None
    """Use so many users only: random ones, the same under every seed of a scenario. null: all."""
    test_share: Share = 0.1
    """Where there is `all_data` only: the share of each user's samples that tests."""

    @property
    @abstractmethod
    def classes(self) -> int:
        """The number of labels."""

    @abstractmethod
    def convert(self, x: list[Any], y: list[Any]) -> Samples:
        """What `pixels` takes, and labels int64 (n,), of the lists that a user has in the files."""

    def load(self) -> Dataset:
        """The data set in memory. FileNotFoundError, with the cures, where files are missing."""
        folder = Path(self.path).expanduser()
        train, test = (read_users(folder / name, self.convert) for name in ("train", "test"))
        if not (train and test):
            train, test = self._hold_out(read_users(folder / "all_data", self.convert))
        if not train:
            raise FileNotFoundError(
                f"data: {str(folder.absolute())!r} must have JSON files in `train` and `test`, or in `all_data`, but "
                "has none; make them with LEAF's preprocess.sh, or correct `path`"
            )
        for user in self._left_out(sorted(train)):
            del train[user]
            test.pop(user, None)
        return self.dataset(*as_splits(train, test), num_classes=self.classes)

    def _left_out(self, known: list[str]) -> list[str]:
        if self.users is None:
            return []
        if self.users > len(known):
            raise ValueError(f"data: `users` must be at most {len(known)}, got {self.users}; lower it")
        return [known[i] for i in generator(0, "leaf users").permutation(len(known))[self.users :]]

    def _hold_out(self, users: dict[str, Samples]) -> tuple[dict[str, Samples], dict[str, Samples]]:
        """Training and test samples of users, drawn."""
        train, test = {}, {}
        for i, (user, (x, y)) in enumerate(sorted(users.items())):
            order = generator(0, "leaf test", i).permutation(len(y))
            of_test, of_train = np.split(order, [held_out_size(len(y), self.test_share)])
            train[user], test[user] = (x[of_train], y[of_train]), (x[of_test], y[of_test])
        return train, test
