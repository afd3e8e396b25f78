"""Samples by user, as LEAF has them in JSON files (Caldas et al., LEAF: A Benchmark for Federated Settings, 2018)."""

import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split, held_out_size
from raysim.data.federation.partition import Natural
from raysim.data.sources.images import Images
from raysim.data.sources.labels import joined_labels
from raysim.data.sources.reading import files_below
from raysim.data.sources.source import LocalTest, Partition, Share
from raysim.parts.errors import BadValue, MissingFile
from raysim.parts.part import Clients, Pixels
from raysim.parts.rng import generator
from results.location import location

Samples = tuple[np.ndarray, np.ndarray]  # x (n, ...) and y (n, ...) of one user
FEMNIST_LABELS = 62
Convert = Callable[[list[Any], list[Any]], Samples]


def read_users(folder: Path, convert: Convert) -> dict[str, Samples]:
    """Reads the samples of each user from the folder's JSON files; returns {} if there are none.

    convert: turns the lists x and y of a user, as LEAF writes them, into arrays. Raises ValueError if a file is not as
    LEAF writes it.
    """
    users: dict[str, Samples] = {}
    for file in files_below(folder, (".json",), deep=False):
        try:
            by_user = json.loads(file.read_bytes())["user_data"]
            for user, samples in by_user.items():
                if part := [one for one in samples["y"] if isinstance(one, float) and not one.is_integer()]:
                    raise ValueError(f"user {user!r} has a label {part[0]}, which is not a whole number")
                x, y = convert(samples["x"], samples["y"])
                if len(x) != len(y):
                    raise ValueError(f"user {user!r} has {len(x)} x and {len(y)} y")
                if user in users:
                    raise ValueError(f"user {user!r} is in another file, too")
                if len(y):
                    users[user] = (x, y)
        except (ValueError, KeyError, TypeError) as error:
            text = f"{str(file)!r} must be a whole JSON file as LEAF writes it, with x and y of each user"
            cure = "make it again with LEAF's preprocess.sh"
            raise BadValue(f"{text} in `user_data`, got {type(error).__name__}: {error}; {cure}") from error
    return users


def as_splits(
    *splits: dict[str, Samples], order: Callable[[str], Any] | None = None, column: str = "user"
) -> list[Split]:
    """Joins the samples of each split, user after user, with a column of users, int64: a user's place in sorted order.

    order: what users' names are sorted by, if not themselves. column: its name.
    """
    place = {user: i for i, user in enumerate(sorted(set().union(*splits), key=order))}
    joined = []
    for users in splits:
        chosen = sorted(users, key=place.__getitem__)
        sizes = [len(users[user][1]) for user in chosen]
        user = np.repeat(np.array([place[user] for user in chosen], dtype=np.int64), sizes)
        x, y = np.concatenate([users[user][0] for user in chosen]), joined_labels([users[user][1] for user in chosen])
        joined.append(Split(x, y, {column: user}))
    return joined


class LeafImages(Images):
    """Labelled images of many users, in the folders that LEAF makes."""

    path: Annotated[str, Field(examples=["data/leaf"])]
    """The data set's folder `data` as LEAF makes it, with `train` and `test`, or else `all_data`, in it."""
    users: Clients | None = None
    """Number of users to use: random ones, the same for every seed of a scenario. null: all."""
    test_share: Share = 0.1
    """Share of each user's samples that is the test set; used if LEAF's folder has `all_data` only."""

    partition: Partition = Natural()
    local_test: LocalTest = "test"

    @property
    @abstractmethod
    def classes(self) -> int:
        """Number of labels."""

    @abstractmethod
    def convert(self, x: list[Any], y: list[Any]) -> Samples:
        """Turns the lists that a user has in the files into what `pixels` takes, and into labels, int64 (n,)."""

    def reads(self) -> Sequence[Path]:
        folders = [location(self.path).expanduser() / name for name in ("train", "test", "all_data")]
        return [folder for folder in folders if folder.is_dir()]

    def load(self) -> Dataset:
        """Loads the data set. Raises FileNotFoundError, saying what to do, if files are missing."""
        folder = location(self.path).expanduser()
        train, test = (read_users(folder / name, self.convert) for name in ("train", "test"))
        if not (train and test):
            train, test = self._hold_out(read_users(folder / "all_data", self.convert))
        if not train:
            has = [f"`{name}`" for name in ("train", "test") if files_below(folder / name, (".json",), deep=False)]
            text = f"{str(folder.absolute())!r} must have JSON files in `train` and `test`, or in `all_data`, but has"
            got = f"only some in {has[0]}" if has else "none"
            raise MissingFile(f"{text} {got}; make them with LEAF's preprocess.sh, or correct `path`")
        if self.users is not None:
            known = sorted(train)
            if self.users > len(known):
                raise BadValue(f"must be at most {len(known)}, got {self.users}; lower it", "users")
            for place in generator(0, "leaf users").permutation(len(known))[self.users :]:
                del train[known[place]]
                test.pop(known[place], None)
        of_train, of_test = as_splits(train, test)
        return self.dataset(of_train, of_test, self.classes)

    def _hold_out(self, users: dict[str, Samples]) -> tuple[dict[str, Samples], dict[str, Samples]]:
        """Splits each user's samples at random into training and test samples."""
        train, test = {}, {}
        for i, (user, (x, y)) in enumerate(sorted(users.items())):
            order = generator(0, "leaf test", i).permutation(len(y))
            of_test, of_train = np.split(order, [held_out_size(len(y), self.test_share)])
            train[user], test[user] = (x[of_train], y[of_train]), (x[of_test], y[of_test])
        return train, test


class Femnist(LeafImages):
    """FEMNIST: hand-written digits and letters of 3,550 writers, 28 × 28, black on white, from LEAF's JSON files.

    Cohen et al., EMNIST: Extending MNIST to Handwritten Letters, 2017.
    """

    name: str = "femnist"
    labels: Annotated[int, Field(ge=2, le=FEMNIST_LABELS)] = FEMNIST_LABELS
    """Number of labels to use: the first ones of 10 digits, 26 upper-case and 26 lower-case letters."""

    @property
    def classes(self) -> int:
        return self.labels

    def convert(self, x: list[Any], y: list[Any]) -> Samples:
        """Takes pixels from 0 to 1, row after row, as x, and as y labels from 0 to 61."""
        labels = np.array(y, dtype=np.int64)
        if wrong := sorted({*labels.tolist()} - {*range(FEMNIST_LABELS)}):
            raise BadValue(f"labels must be from 0 to {FEMNIST_LABELS - 1}, got {wrong[0]}; correct the files")
        pixels = np.array(x, dtype=np.float32)
        if len(outside := pixels[~((pixels >= 0) & (pixels <= 1))]):
            raise BadValue(f"pixels must be from 0 to 1, got {outside[0]}; correct the files")
        images = np.rint(255 * pixels).astype(np.uint8).reshape(len(x), 28, 28, 1)
        return images[labels < self.labels], labels[labels < self.labels]


class Celeba(LeafImages):
    """CelebA: photographs of 9,343 celebrities, smiling or not, from LEAF's JSON files and the aligned images.

    Liu et al., Deep Learning Face Attributes in the Wild, ICCV 2015. The images must be in `raw/img_align_celeba` below
    `path`, where LEAF expects them. Loading decodes all images of the users chosen, so set `users` to load fewer.
    """

    classes: ClassVar[int] = 2

    name: str = "celeba"
    size: Pixels = 84
    """Side, in pixels, of the square that images are resized to."""

    def convert(self, x: list[Any], y: list[Any]) -> Samples:
        """Takes names of image files as x, and as y 1 for a smile, else 0."""
        return np.array([str(self._images / name) for name in x]), np.array(y, dtype=np.int64)

    def reads(self) -> list[Path]:
        return [*super().reads(), self._images]

    @property
    def _images(self) -> Path:
        return location(self.path).expanduser() / "raw" / "img_align_celeba"
