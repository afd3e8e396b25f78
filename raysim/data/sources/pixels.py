"""Decodes image files to arrays of pixels, and resizes those."""

import platform
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from itertools import chain

import numpy as np

from raysim.data.sources.reading import kept
from raysim.parts.errors import BadValue, MissingFile
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

    def pixels() -> np.ndarray:
        return stack([decode(content, size, name) for content, name in zip(contents, names, strict=True)])

    return kept("images", chain([_decoder(size)], contents), pixels)


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
