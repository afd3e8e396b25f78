"""Image files in a folder for each class."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split, tested
from raysim.data.meaning import LabelMeaning
from raysim.data.sources.images import SUFFIXES, Images
from raysim.data.sources.reading import files_below, is_hidden, reading
from raysim.data.sources.source import Share
from raysim.parts.errors import BadValue, MissingFile
from raysim.parts.part import Pixels
from results.location import location

IMAGES, LABELS = "ISIC_2019_Training_Input", "ISIC_2019_Training_GroundTruth.csv"
CLASSES = ("MEL", "NV", "BCC", "AK", "BKL", "DF", "VASC", "SCC")  # not UNK, which no training sample has
TRAIN = ("train", "training")  # folders of the splits, in any letters
TEST = ("test", "testing", "val", "valid", "validation", "dev", "eval")


class ImageFolder(Images):
    """Images in a folder for each class, such as a subset of ImageNet.

    Labels number the classes in order of their folders' names; hidden folders do not count. A class has all images
    below its folder, of the formats that Pillow reads. Only the images that are used are decoded; set `train_samples`
    and `test_samples` to use fewer. With `clients: folder`, there is a folder for each client, and in it one for each
    class that the client has.
    """

    name: str = "image_folder"
    path: Annotated[str, Field(examples=["data/pictures"])]
    """Folder that has a folder for each class, or has `train` and `test` with a folder for each class. `training` is
    taken for `train`, and the first of `testing`, `val`, `valid`, `validation`, `dev` and `eval` that is there for
    `test`, in small or capital letters."""
    size: Annotated[Pixels, Field(examples=[32])]
    """Side, in pixels, of the square that images are resized to."""
    test_share: Share = 0.1
    """Share of each class's images that is the test set; used only if there is no folder of test images."""

    def load(self) -> Dataset:
        """Loads uint8 images (n, size, size, 3). Raises FileNotFoundError, saying what to do, if there are none."""
        folder = location(self.path).expanduser()
        train = next(iter(_named(folder, TRAIN)), folder)
        of_test = _named(folder, TEST) if train != folder else []
        classes = self._classes_of(train)
        samples = self._listed(train, classes)
        if empty := set(range(len(classes))) - set(samples.y.tolist()):
            raise BadValue(
                f"{classes[min(empty)]!r} in {str(train)!r} must hold images of its class, named *.png, *.jpg and the "
                "like, but holds none; put them there, or remove the folder"
            )
        if not of_test:
            of_train, tests = tested(samples, self.test_share)
        elif strangers := sorted(set(self._classes_of(of_test[0], f"take {of_test[0].name!r} away")) - set(classes)):
            text = f"{str(of_test[0])!r} must have folders of the classes in {str(train)!r} only"
            raise BadValue(f"{text}, got {strangers[0]!r}; name it as its class there, or remove it")
        else:
            of_train, tests = samples, self._listed(of_test[0], classes)
        labels = LabelMeaning("classes", len(classes), tuple(classes))
        return self.dataset(of_train, tests, labels, _unused(folder, [train, *of_test[:1]], classes))

    @property
    def _by_folder(self) -> bool:
        return "folder" in self.sides

    def _classes_of(self, folder: Path, cure: str = "correct `path`") -> list[str]:
        found = folders_in(folder)
        if self._by_folder:
            found = sorted({name for client in found for name in folders_in(folder / client)})
        if not found:
            of_clients = "for each client, and in it one " if self._by_folder else ""
            must = f"must have a folder {of_clients}for each class, but has none; put the images there"
            raise MissingFile(f"{str(folder.absolute())!r} {must}, or {cure}")
        return found

    def _listed(self, folder: Path, classes: list[str]) -> Split:
        """Lists the images of a split, client after client where each has a folder."""
        if not self._by_folder:
            return list_images(folder, classes)
        clients = [name for name in folders_in(folder) if folders_in(folder / name)]
        found = [list_images(folder / name, classes) for name in clients]
        x, y = (np.concatenate([getattr(split, of) for split in found]) for of in ("x", "y"))
        return Split(x, y, {"folder": np.repeat(clients, [len(split) for split in found])})


def _unused(folder: Path, used: list[Path], classes: list[str]) -> Iterable[str]:
    """Yields what is in a folder and is not used. used: folders of splits."""
    yield from (f"folder {name!r}" for name in folders_in(folder) if folder not in used and folder / name not in used)
    for split in used:
        files = [file for name in classes for file in files_below(split / name)]
        found = [file for file in files if file.suffix.lower() not in SUFFIXES]
        if found := sorted([*files_below(split, SUFFIXES, deep=False), *found]):
            yield f"{len(found)} files of {split.name!r}, such as {str(found[0].relative_to(split))!r}"


def _named(folder: Path, names: tuple[str, ...]) -> list[Path]:
    """Returns the folders of these names, in small or capital letters, in the order of the names."""
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    found = {entry.name.lower(): entry for entry in entries if entry.is_dir()}
    return [found[name] for name in names if name in found]


def folders_in(folder: Path) -> list[str]:
    """Returns the names of the folders in a folder, but for hidden ones, in order."""
    entries = folder.iterdir() if folder.is_dir() else ()
    return sorted(entry.name for entry in entries if entry.is_dir() and not is_hidden(entry.name))


def list_images(folder: Path, classes: list[str]) -> Split:
    """Lists paths and labels of the images of each class, in order of their names. A class may have no folder."""
    files = [sorted(map(str, files_below(folder / name, SUFFIXES))) for name in classes]
    labels = np.repeat(np.arange(len(classes), dtype=np.int64), [len(of_class) for of_class in files])
    if not len(labels):
        text = f"the folders in {str(folder.absolute())!r} must hold images, named *.png, *.jpg and the like, but hold"
        raise MissingFile(f"{text} none; put them there, or correct `path`")
    return Split(np.array([file for of_class in files for file in of_class]), labels)


class Isic2019(Images):
    """ISIC 2019: 25,331 dermoscopic images of 8 kinds of skin lesions, from the challenge's training files.

    The labels of the challenge's own test set are not public, so a share of the training images is the test set. All
    images, decoded, take 25,331 · 3 · size² bytes; set `train_samples` to use fewer.
    """

    classes: ClassVar[int] = len(CLASSES)

    name: str = "isic2019"
    path: Annotated[str, Field(examples=["data/isic2019"])]
    """Folder with the folder ISIC_2019_Training_Input and the file ISIC_2019_Training_GroundTruth.csv, both from
    challenge.isic-archive.com."""
    size: Annotated[Pixels, Field(examples=[64])]
    """Side, in pixels, of the square that images are resized to."""
    test_share: Share = 0.2
    """Share of each label's images that is the test set; it is the same for every seed of a scenario."""

    def load(self) -> Dataset:
        """Loads uint8 images (n, size, size, 3). Raises FileNotFoundError, saying what to do, if a file is missing."""
        table = location(self.path).expanduser() / LABELS
        if not table.exists():
            text = f"{LABELS!r} must be in {str(table.parent.absolute())!r}, but is not there; put it there, from"
            raise MissingFile(f"{text} challenge.isic-archive.com, with the folder {IMAGES!r}, or correct `path`")
        images = read_labels(table)
        paths = np.array([str(table.parent / IMAGES / f"{name}.jpg") for name in images.x.tolist()])
        return self.dataset(*tested(Split(paths, images.y), self.test_share), len(CLASSES))


def read_labels(table: Path) -> Split:
    """Reads names and labels of the images, in stored order. Raises ValueError if a row has no single label."""
    with reading(table, "a whole CSV file", "fetch it again"), table.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    names, labels = [], []
    for line, row in enumerate(rows, start=2):
        given = [label for label, kind in enumerate(CLASSES) if row.get(kind) in ("1", "1.0")]
        if "image" not in row or len(given) != 1:
            text = f"line {line} of {str(table)!r} must have an image's name in the column `image` and a 1 in one of"
            raise BadValue(f"{text} the columns {', '.join(CLASSES)}, got {row!r}; fetch it again")
        names.append(row["image"])
        labels.append(given[0])
    return Split(np.array(names), np.array(labels, dtype=np.int64))
