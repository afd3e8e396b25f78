"""The small hand-written digits that come with scikit-learn: for first steps and tests, without any download."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

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
        rows = np.loadtxt(_file(), delimiter=",", dtype=np.int64)  # 64 grey levels from 0 to 16, and the label
        x = np.round(rows[:, :-1] * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8, 1)
        everything = Split(x, rows[:, -1])
        order = generator(0, "digits").permutation(len(everything))
        test, train = np.split(order, [len(everything) // 5])
        return self.dataset(everything.take(np.sort(train)), everything.take(np.sort(test)), num_classes=10)


def _file() -> Path:
    """Returns scikit-learn's file. Importing scikit-learn to find it would take longer than everything else here."""
    (package,) = find_spec("sklearn").submodule_search_locations  # type: ignore[union-attr, misc]  # a package
    return Path(package) / "datasets" / "data" / "digits.csv.gz"
