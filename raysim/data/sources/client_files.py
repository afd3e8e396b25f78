"""Folders with a file for each client, as PFLlib and many scripts leave them."""

import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset
from raysim.data.federation.partition import Natural
from raysim.data.sources.image_folder import TEST
from raysim.data.sources.inputs import require_same_kind
from raysim.data.sources.labels import one_axis, require_alike
from raysim.data.sources.leaf import Samples, as_splits
from raysim.data.sources.raw_samples import RawSamples
from raysim.data.sources.reading import PlainUnpickler, files_below, load_npz, read_header, reading
from raysim.data.sources.source import LocalTest, Partition
from raysim.parts.errors import BadValue, MissingFile
from results.location import location


class ClientFiles(RawSamples):
    """A folder with an .npz file for each client, such as `train/0.npz` and `test/0.npz`.

    A file has x and y, as numpy.savez writes them; or `data`, a dictionary of both, as PFLlib (Zhang et al., JMLR 2025)
    writes it. Of that, arrays and plain values are read, and no code is run. Clients are in the order of the names of
    their files, and numbers in order of size.
    """

    name: str = "client_files"
    path: Annotated[str, Field(examples=["data/Cifar10"])]
    """The folder. Training samples are in its folder `train`, and test samples in `test` or, if it is not there, the
    first of `testing`, `val`, `valid`, `validation`, `dev` and `eval`; without any, a share of the samples tests, and
    without `train`, the files are in the folder itself."""

    partition: Partition = Natural(by="file")
    local_test: LocalTest = "test"

    @property
    def divisible_by(self) -> tuple[str, ...] | None:
        return ("label", "file") if self.task == "classes" else None

    def reads(self) -> Sequence[Path]:
        return [file for files in self._files() for file in files]

    def load(self) -> Dataset:
        """Joins the clients' samples, with a column `file`. Raises FileNotFoundError or ValueError with the file."""
        files = self._files()
        if not files[0]:
            text = "must be a folder with an .npz file for each client, in it or in `train`, but"
            where = str(location(self.path).expanduser().absolute())
            raise MissingFile(f"{text} {where!r} has none; correct the path", "path")
        train, *test = as_splits(*map(_read, filter(None, files)), order=_order, column="file")
        unused = [f"folder {name!r}" for name in self._tests()[1:]]
        return self.made_of(train, test[0] if test else None, unused)

    def _files(self) -> tuple[list[Path], list[Path]]:
        train, tests = self._in("train"), self._tests()
        return (train, self._in(tests[0]) if tests else []) if train else (self._in(""), [])

    def _tests(self) -> list[str]:
        """Returns the folders that may hold test samples, and hold files."""
        return [name for name in TEST if self._in(name)]

    def _in(self, name: str) -> list[Path]:
        return files_below(location(self.path).expanduser() / name, (".npz",), deep=False)


def _order(name: str) -> tuple[int, int, str]:
    return (0, int(name), name) if name.isdecimal() else (1, 0, name)


def _read(files: list[Path]) -> dict[str, Samples]:
    """Returns x and y of each client, by the name of its file. Raises ValueError if files differ in kind."""
    found: dict[Path, Samples] = {}
    for file in files:
        arrays = _of_client(file)
        if lacking := sorted({"x", "y"} - arrays.keys()):
            must = "must have x and y, or `data` with both"
            raise BadValue(f"{str(file)!r} {must}, got {sorted(arrays)!r}; add {lacking[0]!r}", "path")
        x, y = np.asarray(arrays["x"]), np.asarray(arrays["y"])
        if x.dtype.hasobject or x.ndim == 0 or len(x) != len(y):
            text = f"{str(file)!r} must have x, an array of numbers, with a y for each sample, got"
            raise BadValue(f"{text} {x.dtype} of shape {x.shape} and {len(y)} y; correct the file", "path")
        if not len(x):  # a client may have no test samples
            continue
        found[file] = x, one_axis(y)
        first, (like, like_y) = next(iter(found.items()))
        for name, one, other in (("x", x, like), ("y", found[file][1], like_y)):
            if one.shape[1:] != other.shape[1:]:
                text = f"{str(file)!r} must have {name} of shape {other.shape[1:]}, as {str(first)!r} has, got"
                raise BadValue(f"{text} {one.shape[1:]}; make them alike", "path")
        require_same_kind(like, x, str(first), str(file))
        require_alike((like_y, y), (repr(str(first)), repr(str(file))))
    if not found:
        raise BadValue(f"{str(files[0].parent)!r} must have samples, got files without any; make them again", "path")
    return {file.stem: samples for file, samples in found.items()}


def _of_client(file: Path) -> dict[str, Any]:
    """Returns what a file holds by name: its arrays or, of PFLlib's, what is in their dictionary."""
    with reading(file, "a whole .npz file", "write it again"), file.open("rb") as content:
        members = zipfile.ZipFile(content)
        packed = members.read("data.npy") if members.namelist() == ["data.npy"] else None
    if packed is None:
        return dict(load_npz(str(file)))
    what, cure = "an .npz file whose `data` is a dictionary of arrays", "write x and y with numpy.savez"
    with reading(file, what, cure):
        pickled = BytesIO(packed)
        if not (kind := read_header(pickled)).hasobject:
            raise ValueError(f"`data` is an array of {kind}")
        found = PlainUnpickler(pickled).load().item()
        return {str(key): value for key, value in found.items()}
