"""ISIC 2019: skin lesions (Tschandl et al. 2018; Codella et al. 2018; Combalia et al. 2019)."""

import csv
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split
from raysim.data.sources.images import Images
from raysim.data.sources.pixels import read_images
from raysim.data.sources.reading import reading
from raysim.data.sources.source import Share
from raysim.data.sources.subset import tested
from raysim.parts.errors import BadValue, MissingFile
from raysim.parts.part import Pixels
from results.location import location

IMAGES, LABELS = "ISIC_2019_Training_Input", "ISIC_2019_Training_GroundTruth.csv"
CLASSES = ("MEL", "NV", "BCC", "AK", "BKL", "DF", "VASC", "SCC")  # not UNK, which no training sample has


class Isic2019(Images):
    """ISIC 2019: 25,331 dermoscopic images of 8 kinds of skin lesions, from the challenge's training files.

    The labels of the challenge's own test set are not public, so a share of the training images is the test set. All
    images, decoded, take 25,331 · 3 · size² bytes; set `train_samples` to use fewer.
    """

    name: str = "isic2019"
    path: Annotated[str, Field(examples=["data/isic2019"])]
    """Folder with the folder ISIC_2019_Training_Input and the file ISIC_2019_Training_GroundTruth.csv, both from
    challenge.isic-archive.com."""
    size: Annotated[Pixels, Field(examples=[64])]
    """Side, in pixels, of the square that images are resized to."""
    test_share: Share = 0.2
    """Share of each label's images that is the test set; it is the same for every seed of a scenario."""

    @property
    def classes(self) -> int:
        return len(CLASSES)

    def load(self) -> Dataset:
        """Loads uint8 images (n, size, size, 3). Raises FileNotFoundError, saying what to do, if a file is missing."""
        table = location(self.path).expanduser() / LABELS
        if not table.exists():
            text = f"{LABELS!r} must be in {str(table.parent.absolute())!r}, but is not there; put it there, from"
            raise MissingFile(f"{text} challenge.isic-archive.com, with the folder {IMAGES!r}, or correct `path`")
        images = read_labels(table)
        paths = np.array([str(table.parent / IMAGES / f"{name}.jpg") for name in images.x.tolist()])
        return self.dataset(*tested(Split(paths, images.y), self.test_share), num_classes=len(CLASSES))

    def pixels(self, x: np.ndarray) -> np.ndarray:
        return read_images(x.tolist(), self.size)


def read_labels(table: Path) -> Split:
    """Reads names and labels of the images, in stored order. Raises ValueError if a row has no single label."""
    with reading(table, "a whole CSV file", "fetch it again"), table.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    names, labels = [], []
    for line, row in enumerate(rows, start=2):
        given = [label for label, kind in enumerate(CLASSES) if row.get(kind) in ("1", "1.0")]
        if "image" not in row or len(given) != 1:
            text = (
                f"line {line} of {str(table)!r} must have an image's name in the column `image` and a 1 in one of the"
            )
            raise BadValue(f"{text} columns {', '.join(CLASSES)}, got {row!r}; fetch it again")
        names.append(row["image"])
        labels.append(given[0])
    return Split(np.array(names), np.array(labels, dtype=np.int64))
