"""Images: files that are decoded to pixels, the base of data sets of images, how they are scaled, and the digits."""

import platform
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from raysim.data.dataset import LOSSES, Dataset, Split, balanced, uneven
from raysim.data.meaning import InputMeaning, LabelMeaning, Meaning
from raysim.data.sources.in_memory import as_array
from raysim.data.sources.reading import kept
from raysim.data.sources.source import Source
from raysim.parts.errors import BadValue, MissingFile
from raysim.parts.part import Pixels
from raysim.parts.rng import generator
from raysim.terms import Inputs
from results.location import is_local, location

# Suffixes of the files that are taken for images.
SUFFIXES = (
    *(".apng", ".avif", ".avifs", ".bmp", ".bw", ".dds", ".dib", ".gif", ".icns", ".ico", ".im", ".j2c", ".j2k"),
    *(".jfif", ".jp2", ".jpc", ".jpe", ".jpeg", ".jpf", ".jpg", ".jpx", ".mpo", ".msp", ".pbm", ".pcx", ".pfm"),
    *(".pgm", ".png", ".pnm", ".ppm", ".psd", ".qoi", ".ras", ".rgb", ".rgba", ".sgi", ".tga", ".tif", ".tiff"),
    *(".webp", ".xbm", ".xpm"),
)


def decode(content: bytes, size: int | None, file: str) -> np.ndarray:
    """Returns the pixels of an image file, uint8 (height, width, channels): one channel if it is grey, else three.

    It is as it is shown: turned as its EXIF orientation says, on white where it is transparent. If it has several
    frames, the first one is taken.

    size: side, in pixels, of the square that it is resized to; None: not resized. file: its name, for errors. Raises
    ValueError if it is damaged, or has more than 8 bits a channel.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        image: Image.Image = Image.open(BytesIO(content))
        if size is not None:
            image.draft(None, (size, size))  # decodes a JPEG at a smaller scale that is still large enough, much faster
        image.load()
        ImageOps.exif_transpose(image, in_place=True)
    except (OSError, SyntaxError) as error:  # what Pillow raises for a damaged file
        said = "no known format" if isinstance(error, UnidentifiedImageError) else error
        raise BadValue(f"{file} must be a whole image, got {said}; fetch it again") from error
    if image.mode[0] in "IF":
        text = f"images must have 8 bits a channel, got mode {image.mode!r} of {file}"
        raise BadValue(f"{text}; convert the images to 8 bits")
    grey = image.mode in ("1", "L", "LA")
    if image.has_transparency_data:  # pixels that are not seen have colours, too
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    image = image.convert("L" if grey else "RGB")
    if size is not None and image.size != (size, size):
        image = image.resize((size, size), Image.Resampling.BILINEAR)
    pixels = np.asarray(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def decode_all(contents: Sequence[bytes], size: int | None, names: Sequence[str]) -> np.ndarray:
    """Returns the pixels of image files, uint8 (n, height, width, channels), from the cache if they are there.

    size: as in `decode`. names: of the files, for errors.
    """

    images = (decode(content, size, name) for content, name in zip(contents, names, strict=True))
    return kept("images", chain([_decoder(size)], contents), lambda: stack([*images]))


def _decoder(size: int | None) -> bytes:
    """Returns what decides the pixels of images beside their files."""
    import PIL
    from PIL import features

    codecs = {codec: features.version(codec) for codec in ("jpg", "libjpeg_turbo", "zlib", "webp")}
    return repr((4, size, PIL.__version__, codecs, platform.machine())).encode()


def stack(images: Sequence[np.ndarray]) -> np.ndarray:
    """Stacks images to (n, height, width, channels). If only some are grey, they get three equal channels."""
    sizes = {image.shape[:2] for image in images}
    if len(sizes) > 1:
        text = f"images must be of one size, got {len(sizes)} sizes such as {sorted(sizes)[:3]!r} (height, width)"
        raise BadValue(f"{text}; set `size`, to which they are resized")
    x = np.empty((len(images), *sizes.pop(), max(image.shape[2] for image in images)), dtype=np.uint8)
    for row, image in zip(x, images, strict=True):
        row[...] = image
    return x


def read_images(paths: Sequence[str], size: int) -> np.ndarray:
    """Decodes image files, in threads, to uint8 (n, size, size, 3). Raises FileNotFoundError if one is missing.

    Those of this machine are taken from the cache, as long as their names, sizes and times stay the same.
    """
    places = [location(path) for path in paths]
    for place in places:
        if not place.exists():
            text = f"the image {place.name!r} must be in {str(place.parent.absolute())!r}, but is not there"
            raise MissingFile(f"{text}; put the data set's images there")

    def read() -> np.ndarray:
        x = np.empty((len(places), size, size, 3), dtype=np.uint8)

        def read_one(row: int) -> None:
            x[row] = decode(places[row].read_bytes(), size, repr(str(places[row])))

        with ThreadPoolExecutor() as threads:  # Pillow releases the interpreter's lock while it decodes
            for _ in threads.map(read_one, range(len(places))):  # raises what a thread raised
                pass
        return x

    if not all(map(is_local, places)):
        return read()
    stats = [(str(place.absolute()), place.stat()) for place in places]
    files = (f"{path}\0{stat.st_size} {stat.st_mtime_ns}".encode() for path, stat in stats)
    return kept("images", chain([_decoder(size)], files), read)


def fit(x: np.ndarray, height: int, width: int, channels: int) -> np.ndarray:
    """Resizes images (n, h, w, c) bilinearly to (n, height, width, channels), uint8.

    Grey images are repeated in three channels, and three channels are averaged to one.
    """
    from PIL import Image

    fitted = np.empty((len(x), height, width, channels), dtype=np.uint8)
    for row, image in zip(fitted, x, strict=True):
        if image.shape[2] > channels:
            image = np.rint(image.mean(axis=2, keepdims=True)).astype(np.uint8)
        if image.shape[:2] != (height, width):
            picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
            image = np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR)).reshape(height, width, -1)
        row[...] = image
    return fitted


class Images(Source):
    """A data set of labelled uint8 images."""

    scale: Literal["standard", "unit"] = "standard"
    """How pixels are scaled. standard: over the training samples, each channel has mean 0 and standard deviation 1.
    unit: pixels are from 0 to 1."""
    size: Pixels | None = None
    """Side, in pixels, of the square that images are resized to; needed if their sizes differ. null: not resized."""
    channels: Literal[1, 3] | None = None
    """Number of channels that images get: one is repeated in three, three are averaged to one. null: as they are."""

    holds: ClassVar[tuple[Inputs, ...]] = ("images",)

    def problems(self) -> list[str]:
        counts = {"train_samples": self.train_samples, "test_samples": self.test_samples}
        return [text for key, count in counts.items() if count for text in uneven(count, self.classes or 1, key)]

    def dataset(self, train: Split, test: Split, labels: int | LabelMeaning, unused: Iterable[str] = ()) -> Dataset:
        """Returns the data set of the samples that are used, with the mean and deviation of its training samples.

        x of both splits may be anything that `pixels` turns into images. labels: the number of classes, or what else
        labels are. unused: what is beside the samples. Raises ValueError if there are not equally many samples of each
        label to use.
        """
        meant = LabelMeaning("classes", labels) if isinstance(labels, int) else labels
        train = self._decoded(balanced(train, self.train_samples, meant.outputs, "train_samples"))
        test = self._decoded(balanced(test, self.test_samples, meant.outputs, "test_samples"))
        mean, std = self.statistics(train.x)
        meaning = Meaning(InputMeaning.of(train.x, mean, std), meant, unused=tuple(unused))
        return Dataset(train, test, meant.outputs, mean, std, LOSSES[meant.task], meaning)

    def inputs_of(self, given: Any, inputs: InputMeaning, folder: Path) -> Any:
        """Takes bytes (n, height, width, channels) or (n, height, width), or names of image files."""
        x = as_array(given)
        x = self.pixels(x.astype(np.str_) if x.dtype.kind in "OUST" else x)
        return self.fitted(x[..., None] if x.ndim == 3 else x)

    def _decoded(self, split: Split) -> Split:
        return Split(self.fitted(self.pixels(split.x)), split.y, split.columns)

    def fitted(self, x: np.ndarray) -> np.ndarray:
        """Returns images (n, height, width, channels) in the size, and with the channels, that this data set has."""
        if x.dtype != np.uint8 or x.ndim != 4:
            raise BadValue(f"images must be uint8 (n, height, width, channels), got {x.dtype} of shape {x.shape}")
        height, width, channels = x.shape[1:]
        wanted = (self.size or height, self.size or width, self.channels or channels)
        if wanted != (height, width, channels):
            if channels not in (1, 3):
                text = f"images must have 1 or 3 channels where `size` or `channels` changes them, got {channels}"
                raise BadValue(f"{text}; leave these keys out")
            x = fit(x, *wanted)
        return x

    def pixels(self, x: np.ndarray) -> np.ndarray:
        """Returns the images, uint8 (n, height, width, channels). x: these, or names of their files."""
        return x if x.dtype.kind != "U" or self.size is None else read_images(x.tolist(), self.size)

    def statistics(self, x: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Returns the mean and deviation, by channel, with which images (n, height, width, channels) are scaled."""
        if self.scale == "unit":
            return (0.0,) * x.shape[-1], (1.0,) * x.shape[-1]
        return channel_statistics(x)


def channel_statistics(x: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Returns mean and standard deviation by channel of uint8 images (n, height, width, channels), scaled to 0..1.

    The sums are over integers and so exact. A channel without variation gets deviation 1, because images are divided
    by it.
    """
    pixels, channels = x[..., 0].size, x.shape[-1]
    blocks = np.array_split(x, len(x) // 1024 + 1)  # the squares of all images at once would take twice their memory
    total = x.sum(axis=0, dtype=np.int64).reshape(-1, channels).sum(axis=0)  # far faster than over three axes
    squared = np.sum([np.square(block, dtype=np.uint16).sum(axis=0, dtype=np.int64) for block in blocks], axis=0)
    squares = squared.reshape(-1, channels).sum(axis=0)
    mean = total / pixels
    std = np.sqrt(np.maximum(squares / pixels - mean**2, 0)) / 255
    return tuple((mean / 255).tolist()), tuple(np.where(std > 0, std, 1.0).tolist())


class Digits(Images):
    """1,797 hand-written digits of 8 × 8 pixels, which come with raysim; scikit-learn's `load_digits` has the same.

    Alpaydin, Kaynak, Optical recognition of handwritten digits, UCI machine learning repository, 1998 (CC BY 4.0).
    """

    classes: ClassVar[int] = 10

    name: str = "digits"

    def load(self) -> Dataset:
        """Loads 1,438 training and 359 test images (n, 8, 8, 1), the same ones for every seed of a scenario."""
        rows = _digits()
        x = np.round(rows[:, :-1] * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8, 1)
        everything = Split(x, rows[:, -1])
        order = generator(0, "digits").permutation(len(everything))
        test, train = np.split(order, [len(everything) // 5])
        return self.dataset(everything.take(np.sort(train)), everything.take(np.sort(test)), 10)


@cache  # 0.9 MB, and a small run takes no longer than reading them
def _digits() -> np.ndarray:
    """Returns 64 grey levels from 0 to 16 of each image, and its label."""
    return np.loadtxt(Path(__file__).parent / "digits.csv.gz", delimiter=",", dtype=np.int64)
