"""The small hand-written digits that come with scikit-learn: for first steps and tests, without any download."""

from typing import Literal

import numpy as np

from raysim.data.dataset import Dataset, Split, image_dataset
from raysim.data.pool import Pool
from raysim.rng import generator


class Digits(Pool):
    """1,797 hand-written digits of 8 × 8 pixels, bundled with scikit-learn."""

    name: Literal["digits"] = "digits"

    @property
    def classes(self) -> int:
        return 10

    def load(self) -> Dataset:
        """1,438 training and 359 test images (n, 8, 8, 1): the same ones under every seed of a scenario."""
        from sklearn.datasets import load_digits

        images, labels = load_digits(return_X_y=True)  # grey levels from 0 to 16
        x = np.round(images * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8, 1)
        everything = Split(x, labels.astype(np.int64))
        order = generator(0, "digits").permutation(len(everything))
        test, train = np.split(order, [len(everything) // 5])
        return image_dataset(everything.take(np.sort(train)), everything.take(np.sort(test)), num_classes=10)
