"""CelebA, of LEAF (Liu et al., Deep Learning Face Attributes in the Wild, ICCV 2015; Caldas et al., 2018)."""

from pathlib import Path
from typing import Any

import numpy as np

from raysim.data.sources.leaf import LeafImages, Samples
from raysim.data.sources.pixels import read_images
from raysim.parts.part import Pixels
from results.location import location


class Celeba(LeafImages):
    """CelebA: photographs of 9,343 celebrities, smiling or not, from LEAF's JSON files and the aligned images.

    The images must be in `raw/img_align_celeba` below `path`, where LEAF expects them. Loading decodes all images of
    the users chosen, so set `users` to load fewer.
    """

    name: str = "celeba"
    size: Pixels = 84
    """Side, in pixels, of the square that images are resized to."""

    @property
    def classes(self) -> int:
        return 2

    def convert(self, x: list[Any], y: list[Any]) -> Samples:
        """Takes names of image files as x, and as y 1 for a smile, else 0."""
        return np.array(x, dtype=np.str_), np.array(y, dtype=np.int64)

    def reads(self) -> list[Path]:
        return [*super().reads(), self._images]

    def pixels(self, x: np.ndarray) -> np.ndarray:
        return read_images([str(self._images / name) for name in x.tolist()], self.size)

    @property
    def _images(self) -> Path:
        return location(self.path).expanduser() / "raw" / "img_align_celeba"
