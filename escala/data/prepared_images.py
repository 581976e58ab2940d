"""Images made ready in one file, in the safetensors format (https://huggingface.co/docs/safetensors/index).

The file begins with the length of its header, 8 bytes, little-endian; then the header, JSON; then the tensors without
gaps: `train.inputs` [rows, *shape], `train.targets` [rows] int64, and the same for `test` and, where it has rows,
`validation`. Inputs are U8, or F16 or F32 from 0 to 1. The metadata are strings, those for lists JSON. The format is
written and read here, and not by its package, because this needs no memory for the tensors.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.data.base import PARTS, Facts, Inputs, Part, Source, Targets
from escala.data.paths import open_file
from escala.terms.errors import EscalaError

FORMAT = "escala-images-1"
ENDINGS = (".escala", ".safetensors")
DTYPES = {"uint8": "U8", "float16": "F16", "float32": "F32"}
"""Types of inputs by numpy's and by the format's name."""

_NUMPY = {name: dtype for dtype, name in DTYPES.items()} | {"I64": "int64"}
_EVERY: tuple[Part, ...] = ("train", "validation", "test")
_LONGEST_HEADER = 100_000_000
"""Bytes; the format's own limit."""
_AT_ONCE = 256


@dataclass(frozen=True)
class Tensor:
    """`dtype` is numpy's name; `begin` is the byte of the file with which it begins."""

    dtype: str
    shape: tuple[int, ...]
    begin: int

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Layout:
    """What a header says."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str]


@dataclass(frozen=True)
class PreparedImages(Source):
    """The file at `path`, as the set called `name`. Rows are mapped from it, not read."""

    name: str
    path: Path

    def facts(self) -> Facts:
        """Reads the header. Raises EscalaError DATA-FILE where it is damaged or of another kind, DATA-PATH."""
        layout = self._layout
        names, skipped, notes = (self._texts(key) for key in ("class_names", "skipped", "notes"))
        inputs = layout.tensors["train.inputs"]
        where = str(self.path)
        return Facts(
            self.name,
            "real",
            where,
            inputs.shape[1:],
            inputs.dtype,
            len(names),
            notes,
            class_names=names,
            skipped=len(skipped),
        )

    def parts(self) -> tuple[Part, ...]:
        return (*PARTS, *(("validation",) if "validation.inputs" in self._layout.tensors else ()))

    def targets(self, part: Part) -> Targets:
        """Raises EscalaError DATA-LABEL for a class that is not in the header, DATA-FILE."""
        labels: Targets = np.array(self._mapped(f"{part}.targets"))
        classes = len(self._texts("class_names"))
        wrong = np.flatnonzero((labels < 0) | (labels >= classes))
        if len(wrong):
            raise EscalaError(
                "DATA-LABEL",
                f"{self.path}, {part}",
                f"the label of row {wrong[0]:,} (from 0) is {labels[wrong[0]]}; labels out of range: {len(wrong):,}",
                expected=f"labels go from 0 to {classes - 1}",
                next_step=_AGAIN,
            )
        return labels

    def blocks(self, part: Part) -> Iterator[Inputs]:
        """256 rows at a time. Raises EscalaError DATA-VALUE for one that is not finite, DATA-FILE."""
        rows = self._mapped(f"{part}.inputs")
        for first in range(0, len(rows), _AT_ONCE):
            block = rows[first : first + _AT_ONCE]
            if block.dtype.kind == "f" and not np.isfinite(block).all():
                number = first + int(np.flatnonzero(~np.isfinite(block.reshape(len(block), -1)).all(axis=1))[0])
                raise EscalaError(
                    "DATA-VALUE",
                    f"{self.path}, {part}",
                    f"row {number:,} (from 0) holds a value that is not finite",
                    expected="values from 0 to 1",
                    next_step=_AGAIN,
                )
            yield block

    @cached_property
    def _layout(self) -> Layout:
        layout = read_layout(self.path)
        _check(self.path, layout)
        return layout

    def _texts(self, key: str) -> tuple[str, ...]:
        return _texts_of(self.path, self._layout.metadata, key)

    def _mapped(self, name: str) -> NDArray[Any]:
        tensor = self._layout.tensors[name]
        end = tensor.begin + tensor.size
        if self.path.stat().st_size < end:
            # To read what is no longer there from a mapped file ends the process.
            raise _damaged(self.path, f"ends before byte {end:,}", "the header promised more a moment ago")
        stored = np.memmap(self.path, np.dtype(tensor.dtype).newbyteorder("<"), "r", tensor.begin, tensor.shape)
        return np.asarray(stored)


_AGAIN = "make it anew with escala data prepare"


def recognise(path: Path) -> PreparedImages | None:
    """The set in a prepared file; None: a file of another kind. What is wrong with it shows when it is read."""
    if not path.is_file():
        return None
    with open_file(path) as file:
        begin = file.read(9)
    # Text has no bytes of 0, which the upper half of the header's length is made of.
    if path.suffix in ENDINGS or (begin[4:8] == bytes(4) and begin[8:] == b"{"):
        return PreparedImages(path.stem, path)
    return None


def header_bytes(tensors: Mapping[str, tuple[str, tuple[int, ...]]], metadata: Mapping[str, str]) -> bytes:
    """The beginning of a file of these tensors, by name (numpy's type, shape), which follow in this order.

    Its length is a multiple of 8, so tensors of wide types, which come first, are aligned.
    """
    names, offset = {dtype: name for name, dtype in _NUMPY.items()}, 0
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    for name, (dtype, shape) in tensors.items():
        end = offset + Tensor(dtype, shape, 0).size
        header[name] = {"dtype": names[dtype], "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def read_layout(path: Path) -> Layout:
    """The header of any safetensors file, with every length and offset checked against the file.

    Raises EscalaError DATA-FILE where they do not agree, DATA-PATH.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or not 2 <= length <= min(_LONGEST_HEADER, size - 8):
            promised = f"a header of {length:,} bytes is promised" if size >= 8 else "no header can be in it"
            raise _damaged(path, f"holds {size:,} bytes: {promised}", "a safetensors file, as long as it was written")
        text = file.read(length)
    try:
        header = json.loads(text)
        metadata = header.pop("__metadata__", {})
        if not all(isinstance(value, str) for value in metadata.values()):
            raise ValueError("metadata that are no text")
        found = {name: _tensor(told, 8 + length) for name, told in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(path, f"has a header that cannot be understood: {error}", "safetensors' JSON") from error
    end = 8 + length
    for name, tensor in sorted(found.items(), key=lambda item: (item[1].begin, item[1].size)):
        if tensor.begin != end:
            raise _damaged(path, f"{name} begins at byte {tensor.begin:,}", f"byte {end:,}, without gap or overlap")
        end += tensor.size
    if end != size:
        raise _damaged(path, f"holds {size:,} bytes", f"{end:,}, as its header says")
    return Layout(found, metadata)


def _tensor(told: Any, first: int) -> Tensor:
    numbers = [*told["shape"], *told["data_offsets"]]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError("numbers below 0 or that are none")
    begin, end = told["data_offsets"]
    tensor = Tensor(_NUMPY.get(told["dtype"], ""), tuple(told["shape"]), first + begin)
    if not tensor.dtype:
        raise ValueError(f"the type {told['dtype']}, which images and classes do not have")
    if tensor.size != end - begin:
        raise ValueError(f"offsets {begin}, {end} for {tensor.size} bytes")
    return tensor


def _check(path: Path, layout: Layout) -> None:
    """Whether a safetensors file is a prepared one. Raises EscalaError DATA-FILE."""
    if layout.metadata.get("format") != FORMAT:
        raise _damaged(path, "holds other tensors than prepared images", f"a file of the format {FORMAT}")
    for key in ("class_names", "skipped", "notes"):
        _texts_of(path, layout.metadata, key)
    first = layout.tensors.get("train.inputs")
    for part in _EVERY:
        inputs, targets = (layout.tensors.get(f"{part}.{name}") for name in ("inputs", "targets"))
        if part == "validation" and inputs is None and targets is None:
            continue
        if first is None or inputs is None or targets is None:
            raise _damaged(path, f"lacks inputs or targets of {part}", "both for train and test")
        if inputs.dtype not in DTYPES or (inputs.dtype, inputs.shape[1:]) != (first.dtype, first.shape[1:]):
            raise _damaged(path, f"{part} has inputs of {inputs.dtype} {inputs.shape}", "images, as those of train")
        if not inputs.size or (targets.dtype, targets.shape) != ("int64", inputs.shape[:1]):
            raise _damaged(path, f"{part} has targets {targets.shape} for inputs {inputs.shape}", "one for each row")
        if not (len(inputs.shape) == 3 or (len(inputs.shape) == 4 and inputs.shape[1] == 3)):
            raise _damaged(
                path, f"{part} has inputs {inputs.shape}", "[rows, height, width] or [rows, 3, height, width]"
            )


def _texts_of(path: Path, metadata: Mapping[str, str], key: str) -> tuple[str, ...]:
    try:
        found = json.loads(metadata[key])
    except (KeyError, ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise _damaged(path, f"has no {key} in its metadata", "a list of texts in JSON")
    return tuple(found)


def _damaged(path: Path, what: str, expected: str) -> EscalaError:
    return EscalaError("DATA-FILE", str(path), what, expected=f"expected {expected}", next_step=_AGAIN)
