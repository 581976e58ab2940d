"""Images with labels from a table: each row holds the bytes of an image file, all of one size."""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from escala.data.base import PARTS, Facts, Inputs, Part, Source, Targets
from escala.data.table import Batch, Columns, Table, check_labels, fault, labels_of, whole
from escala.terms.errors import EscalaError

LARGEST_PIXELS = 2**26
"""Pixels of one image; a header that promises more is refused before any memory is taken for it."""
_AT_ONCE = 256
_GREY = ("1", "L")


@dataclass(frozen=True)
class TableImages(Source):
    """Rows [height, width] where the first image is grey, else [3, height, width]; unsigned bytes."""

    name: str
    told: str
    tables: Mapping[Part, Table]
    columns: Columns
    notes: tuple[str, ...] = ()

    def facts(self) -> Facts:
        """Reads the first image, and all training labels where the classes have no names."""
        first = next(self._images("train", 1), None)
        if first is None:
            raise fault(self._table("train").where, "holds no rows", code="DATA-EMPTY")
        names = self.columns.class_names
        classes = len(names) or 1 + max(0, int(labels_of(self._table("train"), self.columns.label).max()))
        shape = first.shape[1:]
        return Facts(self.name, "real", self.told, shape, "uint8", classes, self.notes, class_names=names)

    def parts(self) -> tuple[Part, ...]:
        return (*PARTS, *(part for part in self.tables if part not in PARTS))

    def targets(self, part: Part) -> Targets:
        """Reads the labels. Raises EscalaError DATA-PARQ where one is missing, DATA-LABEL outside the classes."""
        table = self._table(part)
        labels = labels_of(table, self.columns.label)
        check_labels(table, self.columns.label, labels, self.facts().classes)
        return labels

    def blocks(self, part: Part) -> Iterator[Inputs]:
        """Decodes the images, 256 at a time. Raises EscalaError DATA-PARQ, DATA-IMG, DATA-HUGE."""
        shape = self.facts().shape
        for first, block in self._numbered(part, _AT_ONCE):
            if block.shape[1:] != shape:
                raise _unlike(self._table(part).where, self.columns.content, first, block.shape[1:], shape)
            yield block

    def _images(self, part: Part, at_once: int) -> Iterator[Inputs]:
        return (block for _, block in self._numbered(part, at_once))

    def _numbered(self, part: Part, at_once: int) -> Iterator[tuple[int, Inputs]]:
        for batch in self._table(part).batches([self.columns.content], at_once):
            yield batch.first, _decoded(batch, self.columns.content)

    def _table(self, part: Part) -> Table:
        if part not in self.tables:
            raise fault(self.told, f"holds no rows for {part}", "expected train beside test or validation")
        return self.tables[part]


def _decoded(batch: Batch, column: str) -> Inputs:
    """All images of a batch, [rows, ...]."""
    array = whole(batch, column)
    if array.type.num_fields:
        # The hub keeps each file's name beside its bytes.
        array = whole(Batch(batch.where, batch.first, {column: array.field("bytes")}), column)
    images: list[Inputs] = []
    for number, value in enumerate(array):
        image = _image(value.as_py(), batch.where, column, batch.first + number)
        if images and image.shape != images[0].shape:
            raise _unlike(batch.where, column, batch.first + number, image.shape, images[0].shape)
        images.append(image)
    return np.stack(images)


def _image(data: bytes, where: str, column: str, row: int) -> Inputs:
    """One image, grey as [height, width], otherwise in colours as [3, height, width]."""
    pillow: Any = importlib.import_module("PIL.Image")
    place = f"{where}, row {row:,}"
    try:
        with pillow.open(io.BytesIO(data)) as image:
            width, height = image.size
            if width * height > LARGEST_PIXELS:
                what = f"the image's header promises {width:,} x {height:,} pixels"
                raise fault(place, what, f"at most {LARGEST_PIXELS:,} are read", column=column, code="DATA-HUGE")
            if image.mode in _GREY:
                return np.asarray(image.convert("L"), np.uint8)
            return np.ascontiguousarray(np.asarray(image.convert("RGB"), np.uint8).transpose(2, 0, 1))
    except EscalaError:
        raise
    except pillow.DecompressionBombError as error:
        raise fault(place, str(error), column=column, code="DATA-HUGE") from error
    except Exception as error:
        # Decoders raise whatever the damaged byte leads to.
        what = f"{len(data):,} bytes cannot be decoded as an image: {error}"
        raise fault(place, what, column=column, code="DATA-IMG") from error


def _unlike(where: str, column: str, row: int, found: tuple[int, ...], expected: tuple[int, ...]) -> EscalaError:
    what = f"an image has the shape {found}"
    return fault(f"{where}, row {row:,} or after", what, f"the first one has {expected}", column=column)
