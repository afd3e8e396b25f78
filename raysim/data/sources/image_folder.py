"""Image files in a folder for each class."""

from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split
from raysim.data.federation.pool import Share
from raysim.data.sources.images import Images, stratified
from raysim.data.sources.pixels import SUFFIXES, read_images
from raysim.parts.part import Count
from results.location import location


class ImageFolder(Images):
    """Images in a folder for each class, such as a subset of ImageNet.

    Labels number the classes in order of their folders' names; hidden folders are none. Only the images that are used
    are decoded; set `train_samples` and `test_samples` to use fewer.
    """

    name: str = "image_folder"
    path: Annotated[str, Field(examples=["data/pictures"])]
    """Folder that has a folder for each class, or has `train` and `test` (or `val`) with a folder for each class."""
    size: Annotated[Count, Field(examples=[32])]
    """Side, in pixels, of the square that images are resized to."""
    test_share: Share = 0.1
    """Share of each class's images that is the test set; used only if there is no folder `test` or `val`."""

    def reads(self) -> tuple[str]:
        return (self.path,)

    def load(self) -> Dataset:
        """Loads uint8 images (n, size, size, 3). Raises FileNotFoundError, saying what to do, if there are none."""
        folder = location(self.path).expanduser()
        train = folder / "train" if (folder / "train").is_dir() else folder
        of_test = [folder / name for name in ("test", "val") if (folder / name).is_dir()]
        classes = self._classes_of(train)
        samples = list_images(train, classes)
        if empty := set(range(len(classes))) - set(samples.y.tolist()):
            raise ValueError(
                f"data image_folder: {str(train / classes[min(empty)])!r} must hold images of its class, named "
                f"*{', *'.join(sorted(SUFFIXES))}, but holds none; put them there, or take the folder away"
            )
        if train == folder or not of_test:
            return self.dataset(*stratified(samples, self.test_share), len(classes))
        if strangers := sorted(set(self._classes_of(of_test[0])) - set(classes)):
            raise ValueError(
                f"data image_folder: {str(of_test[0])!r} must have folders of the classes in {str(train)!r} only, got "
                f"{strangers[0]!r}; take it away"
            )
        return self.dataset(samples, list_images(of_test[0], classes), len(classes))

    def _classes_of(self, folder: Path) -> list[str]:
        entries = folder.iterdir() if folder.is_dir() else ()
        found = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
        if not found:
            raise FileNotFoundError(
                f"data image_folder: {str(folder.absolute())!r} must have a folder for each class, but has none; put "
                "the images there, or correct `path`"
            )
        return found

    def pixels(self, x: np.ndarray) -> np.ndarray:
        return read_images(x.tolist(), self.size)


def list_images(folder: Path, classes: list[str]) -> Split:
    """Lists paths and labels of the images of each class, in order of their names. A class may have no folder."""
    files = [
        sorted(str(file) for file in (folder / name).glob("*") if file.suffix.lower() in SUFFIXES) for name in classes
    ]
    labels = np.repeat(np.arange(len(classes), dtype=np.int64), [len(of_class) for of_class in files])
    if not len(labels):
        raise FileNotFoundError(
            f"data image_folder: the folders in {str(folder.absolute())!r} must hold images, named "
            f"*{', *'.join(sorted(SUFFIXES))}, but hold none; put them there, or correct `path`"
        )
    return Split(np.array([file for of_class in files for file in of_class]), labels)
