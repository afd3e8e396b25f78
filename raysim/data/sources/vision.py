"""The base of data sets that torchvision can download: their original files, in a folder for each data set."""

import gzip
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from raysim.data.dataset import Dataset, Split
from raysim.data.sources.images import Images
from raysim.data.sources.reading import reading
from raysim.parts.errors import MissingFile
from results.location import is_uri, location


class Vision(Images):
    """A data set read from its original files, gzipped or not, in the folder where torchvision puts them."""

    root: str = "data"
    """Folder that contains the data set's own folder."""
    download: bool = False
    """Whether to download missing files, through torchvision."""

    source: ClassVar[str]  # the name of its class in torchvision.datasets
    folder: ClassVar[str]
    train_files: ClassVar[tuple[str, ...]]
    test_files: ClassVar[tuple[str, ...]]

    @property
    def classes(self) -> int:
        return 10

    @abstractmethod
    def read(self, files: tuple[str, ...]) -> Split:
        """Reads the samples in these files. Raises ValueError if one is damaged."""

    def load(self) -> Dataset:
        """Loads the data set. Raises FileNotFoundError, saying what to do, if a file is missing."""
        missing = [file for file in self.train_files + self.test_files if not self._path(file).exists()]
        if missing and self.download:
            from torchvision import datasets

            getattr(datasets, self.source)(self.root, download=True)
        elif missing:
            path = self._path(missing[0]).absolute()
            raise MissingFile(
                f"{path.name!r} (or {path.name + '.gz'!r}) must be in {str(path.parent)!r}, but is not there; "
                "set `download: true`, or put the data set there, or set `root` to where it is"
            )
        return self.dataset(self.read(self.train_files), self.read(self.test_files), self.classes)

    def problems(self) -> list[str]:
        if self.download and is_uri(self.root):
            text = f"downloads go to a folder of this machine, got {self.root!r}; put the files there, or leave it out"
            return [*super().problems(), f"`download`: {text}"]
        return super().problems()

    def reads(self) -> Iterable[Path]:
        return [self._path(file) for file in self.train_files + self.test_files]

    def content(self, file: str) -> bytes:
        """Returns the content of a file, decompressed. Raises ValueError if it is damaged."""
        path = self._path(file)
        if path.suffix != ".gz":
            return path.read_bytes()
        with reading(path, "a whole gzip file", "fetch it again"):
            return gzip.decompress(path.read_bytes())

    def _path(self, file: str) -> Path:
        plain = (location(self.root) / self.folder / file).expanduser()
        gzipped = plain.with_name(f"{file}.gz")
        return gzipped if gzipped.exists() and not plain.exists() else plain
