"""FEMNIST, of LEAF (Cohen et al., EMNIST: Extending MNIST to Handwritten Letters, 2017; Caldas et al., 2018)."""

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from raysim.data.sources.leaf import LeafImages, Samples
from raysim.parts.errors import BadValue

SIDE = 28  # pixels
LABELS = 62


class Femnist(LeafImages):
    """FEMNIST: hand-written digits and letters of 3,550 writers, 28 × 28, black on white, from LEAF's JSON files."""

    name: str = "femnist"
    labels: Annotated[int, Field(ge=2, le=LABELS)] = LABELS
    """Number of labels to use: the first ones of 10 digits, 26 upper-case and 26 lower-case letters."""

    @property
    def classes(self) -> int:
        return self.labels

    def convert(self, x: list[Any], y: list[Any]) -> Samples:
        """Takes pixels from 0 to 1, row after row, as x, and as y labels from 0 to 61."""
        labels = np.array(y, dtype=np.int64)
        if wrong := sorted({*labels.tolist()} - {*range(LABELS)}):
            raise BadValue(f"labels must be from 0 to {LABELS - 1}, got {wrong[0]}; correct the files")
        pixels = np.array(x, dtype=np.float32)
        if len(outside := pixels[~((pixels >= 0) & (pixels <= 1))]):
            raise BadValue(f"pixels must be from 0 to 1, got {outside[0]}; correct the files")
        images = np.rint(255 * pixels).astype(np.uint8).reshape(len(x), SIDE, SIDE, 1)
        return images[labels < self.labels], labels[labels < self.labels]
