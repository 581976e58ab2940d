"""Looking at one image file: its header, its pixels, and what is wrong with it.

Pillow decodes; only the formats below are handed to it, none of which runs another program. The first image of a
file counts; transparency is dropped and a camera's note on which side is up is not heeded, as torchvision's loader
does it.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from escala.data.base import Inputs
from escala.data.paths import open_file
from escala.terms.errors import EscalaError

if TYPE_CHECKING:
    from PIL.Image import Image

LARGEST_PIXELS = 2**26
"""Pixels of one image; a header that promises more is refused before any memory is taken for it."""

ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
"""In lower case; the list of https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.ImageFolder.html."""

BAD = ("DATA-IMG", "DATA-HUGE")
"""Codes of what is wrong with one image alone, so that it may be left out where that was asked for."""

_FORMATS = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP", "GIF")
_ENDS = {"PNG": b"\0\0\0\0IEND\xaeB`\x82", "JPEG": b"\xff\xd9"}
"""The bytes with which a whole file of a format closes."""


@dataclass(frozen=True)
class Header:
    """Pixels across and down; `grey`: one channel of 1, 8 or 16 bits."""

    width: int
    height: int
    grey: bool

    def __str__(self) -> str:
        return f"{self.width}x{self.height} {'grey' if self.grey else 'colour'}"


def read_header(path: Path, class_name: str) -> Header:
    """Size and mode, without decoding. Raises EscalaError DATA-PATH, DATA-IMG, DATA-HUGE."""
    with _opened(path, class_name) as (image, _):
        return _header(image)


def read_pixels(path: Path, class_name: str, *, grey: bool, size: tuple[int, int] | None = None) -> Inputs:
    """The decoded image, uint8 [height, width] where `grey`, else [3, height, width].

    `size` is (width, height): it is brought to it with Pillow's bilinear filter, which averages over all pixels that
    a smaller one stands for. Raises EscalaError DATA-PATH, DATA-IMG, DATA-HUGE.
    """
    with _opened(path, class_name) as (image, _):
        return _pixels(image, grey, size)


def read_open(
    file: BinaryIO, path: Path, class_name: str, *, grey: bool, size: tuple[int, int] | None = None
) -> Inputs:
    """As `read_pixels`, from a file that is already open."""
    with _decoding(file, path, class_name) as (image, _):
        return _pixels(image, grey, size)


def look_through(path: Path, class_name: str, *, strict: bool) -> tuple[Header, tuple[str, ...]]:
    """Decode an image whole. Returns its header and, where `strict`, what is odd though the decoder takes it.

    Raises EscalaError DATA-PATH, DATA-IMG, DATA-HUGE. With `strict` from one thread at a time only, because Python
    keeps its warnings for all threads together.
    """
    if not strict:
        with _opened(path, class_name) as (image, _):
            header = _header(image)
            image.load()
            return header, ()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with _opened(path, class_name) as (image, file):
            header = _header(image)
            form = image.format or ""
            image.load()
            odd = _end(file, form)
    return header, (*odd, *(f"the decoder warns: {warning.message}" for warning in heard))


def _end(file: BinaryIO, form: str) -> tuple[str, ...]:
    end = _ENDS.get(form)
    if end is None:
        return ()
    size = file.seek(0, os.SEEK_END)
    file.seek(-min(size, len(end)), os.SEEK_END)
    if file.read() == end:
        return ()
    return (f"it is decoded, but its {size:,} bytes do not end as a whole {form} file does",)


def _header(image: Image) -> Header:
    return Header(*image.size, image.mode in ("1", "L") or image.mode.startswith("I;16"))


def _pixels(image: Image, grey: bool, size: tuple[int, int] | None) -> Inputs:
    from PIL import Image as pillow  # noqa: N813

    if image.mode.startswith("I;16"):
        # Pillow's own conversion would cut values off instead of dividing them.
        image = pillow.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    elif image.mode in ("I", "F"):
        raise ValueError(f"its mode {image.mode} has more than 16 bits a value")
    mode = "L" if grey else "RGB"
    image.load()
    if image.mode != mode:
        # One that has the mode already would be copied, at its full size.
        image = image.convert(mode)
    if size is not None and size != image.size:
        image = image.resize(size, pillow.Resampling.BILINEAR)
    array = np.asarray(image, np.uint8)
    return array if grey else np.ascontiguousarray(array.transpose(2, 0, 1))


@contextmanager
def _opened(path: Path, class_name: str) -> Iterator[tuple[Image, BinaryIO]]:
    with open_file(path) as file, _decoding(file, path, class_name) as found:
        yield found


@contextmanager
def _decoding(file: BinaryIO, path: Path, class_name: str) -> Iterator[tuple[Image, BinaryIO]]:
    """The image of a file whose header was read and is not too large; every fault of it put into words."""
    # A tenth of a second to import, which no other data need.
    from PIL import Image as pillow  # noqa: N813
    from PIL import UnidentifiedImageError

    try:
        with pillow.open(file, formats=_FORMATS) as image:
            if image.width * image.height > LARGEST_PIXELS:
                raise _huge(path, class_name, f"{image.width:,} x {image.height:,}")
            yield image, file
    except (EscalaError, MemoryError):
        raise
    except (pillow.DecompressionBombError, pillow.DecompressionBombWarning) as error:
        pixels = re.search(r"\d+", str(error))
        raise _huge(path, class_name, f"{int(pixels[0]):,}" if pixels else "too many") from error
    except Exception as error:
        # Decoders raise whatever the damaged byte leads to. Pillow would name the file as an object in memory.
        size = file.seek(0, os.SEEK_END)
        reason = "no image of a known format" if isinstance(error, UnidentifiedImageError) else str(error)
        raise EscalaError(
            "DATA-IMG",
            str(path),
            f"an image of class {class_name}, {size:,} bytes, "
            + (f"cannot be decoded: {reason}" if size else "is empty"),
            expected=f"a whole file of {', '.join(_FORMATS)}",
            next_step="put a whole file there or remove it; escala data prepare --on-bad skip leaves such files out",
        ) from error


def _huge(path: Path, class_name: str, pixels: str) -> EscalaError:
    return EscalaError(
        "DATA-HUGE",
        str(path),
        f"the header of an image of class {class_name} promises {pixels} pixels",
        expected=f"at most {LARGEST_PIXELS:,}",
        next_step="make it smaller or remove it",
    )
