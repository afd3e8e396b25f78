"""The small hand-written digits that come with scikit-learn: for first steps and tests, without any download."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raysim.data.dataset import Dataset, Split
from raysim.data.sources.images import Images
from raysim.parts.rng import generator


class Digits(Images):
    """1,797 hand-written digits of 8 × 8 pixels, bundled with scikit-learn."""

    name: str = "digits"

    @property
    def classes(self) -> int:
        return 10

    def load(self) -> Dataset:
        """Loads 1,438 training and 359 test images (n, 8, 8, 1), the same ones for every seed of a scenario."""
        rows = _rows()
        x = np.round(rows[:, :-1] * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8, 1)
        everything = Split(x, rows[:, -1])
        order = generator(0, "digits").permutation(len(everything))
        test, train = np.split(order, [len(everything) // 5])
        return self.dataset(everything.take(np.sort(train)), everything.take(np.sort(test)), num_classes=10)


@cache  # 0.9 MB, and a small run takes no longer than reading them
def _rows() -> NDArray[np.int64]:
    """Returns 64 grey levels from 0 to 16 of each image, and its label."""
    # Importing scikit-learn to find its file would take longer than everything else here.
    (package,) = find_spec("sklearn").submodule_search_locations  # type: ignore[union-attr, misc]  # a package
    return np.loadtxt(Path(package) / "datasets" / "data" / "digits.csv.gz", delimiter=",", dtype=np.int64)
