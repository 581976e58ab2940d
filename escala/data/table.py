"""Rows in named columns, as the Hugging Face hub keeps its sets, whether in parquet files or in its own cache.

Which columns mean what: `image` or `img` beside `label`; `text` beside `label`; `text` alone; `id`, `question`,
`context` and `answers`. Every value is checked for being there; a column of another type is refused by name.
"""

from __future__ import annotations

import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from escala.data.base import Kind, Targets
from escala.terms.errors import EscalaError

IMAGES = ("image", "img")
LABELS = ("label", "labels", "fine_label")
TEXT = "text"
QUESTIONS = ("id", "question", "context", "answers")

_LABELS_AT_ONCE = 65_536


@dataclass(frozen=True)
class Batch:
    """Consecutive rows, `first` of them counted within the part; an arrow array for each column that was asked for.

    `where` names the file and its row group.
    """

    where: str
    first: int
    columns: Mapping[str, Any]


class Table(ABC):
    """One part of a set, read any number of times in bounded memory."""

    @property
    @abstractmethod
    def where(self) -> str:
        """What errors call it."""

    @abstractmethod
    def schema(self) -> Any:
        """The arrow schema. Raises EscalaError DATA-PARQ."""

    @abstractmethod
    def batches(self, columns: Sequence[str], at_once: int) -> Iterator[Batch]:
        """All rows in order, at most so many at once, these columns only. Raises EscalaError DATA-PARQ."""


@dataclass(frozen=True)
class Columns:
    """What the columns of a table mean. `content` holds images or texts; `label` is empty where there is none."""

    kind: Kind
    content: str = ""
    label: str = ""
    class_names: tuple[str, ...] = ()


def arrow(module: str = "pyarrow") -> Any:
    """A module of the extra `datasets`. Raises EscalaError ENV-EXTRA where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise EscalaError(
            "ENV-EXTRA",
            module,
            "is needed to read this data set and cannot be imported",
            next_step="pip install 'escala[datasets]'",
        ) from error


def fault(where: str, what: str, expected: str = "", *, column: str = "", code: str = "DATA-PARQ") -> EscalaError:
    """An error in a table, with the column where one is to blame."""
    place = f"{where}, column {column}" if column else where
    return EscalaError(code, place, what, expected=expected, next_step="fetch the set again from its publisher")


@contextmanager
def arrow_errors(where: str, columns: Sequence[str] = ()) -> Iterator[None]:
    """Turn what arrow says of damaged data into DATA-PARQ."""
    try:
        yield
    except EscalaError:
        raise
    except UnicodeDecodeError as error:
        what = f"byte {error.object[error.start]:#04x} is no UTF-8"
        raise fault(where, what, column=" or ".join(columns), code="DATA-ENC") from error
    except (arrow().ArrowException, OSError, ValueError) as error:
        first_line = (str(error).splitlines() or [""])[0]
        what = f"cannot be read: {first_line or type(error).__name__}"
        raise fault(where, what, "the file was cut or damaged", column=" or ".join(columns)) from error


def columns_of(table: Table) -> Columns:
    """What the columns of a table mean. Raises EscalaError DATA-PARQ for a missing column or one of another type."""
    schema = table.schema()
    names = list(schema.names)
    if "question" in names or "answers" in names:
        for name in QUESTIONS:
            _require(table, schema, name, f"questions have the columns {', '.join(QUESTIONS)}")
        for name in QUESTIONS[:3]:
            _check_type(table, schema, name, "text")
        _check_answers(table, schema)
        return Columns("questions")
    label = next((name for name in LABELS if name in names), "")
    image = next((name for name in IMAGES if name in names), "")
    if image:
        if not label:
            _require(table, schema, LABELS[0], "images have a column of labels")
        _check_image(table, schema, image)
        _check_type(table, schema, label, "whole numbers")
        return Columns("images", image, label, _class_names(schema, label))
    if TEXT in names:
        _check_type(table, schema, TEXT, "text")
        if not label:
            return Columns("text", TEXT)
        _check_type(table, schema, label, "whole numbers")
        return Columns("labelled text", TEXT, label, _class_names(schema, label))
    known = f"{' or '.join(IMAGES)} and label, text, text and label, or {', '.join(QUESTIONS)}"
    raise fault(table.where, f"holds the columns {', '.join(names) or 'none'}", f"expected {known}")


def whole(batch: Batch, name: str) -> Any:
    """A column of a batch, in which no value may be missing. Raises EscalaError DATA-PARQ."""
    array = batch.columns[name]
    if array.null_count:
        row = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
        what = f"row {batch.first + row:,} (from 0) has no value; rows without one around it: {array.null_count:,}"
        raise fault(batch.where, what, column=name)
    return array


def labels_of(table: Table, name: str) -> Targets:
    """A column of labels, whole. Raises EscalaError DATA-PARQ for a missing value."""
    read = [
        whole(batch, name).to_numpy(zero_copy_only=False).astype(np.int64)
        for batch in table.batches([name], _LABELS_AT_ONCE)
    ]
    return np.concatenate(read) if read else np.empty(0, np.int64)


def check_labels(table: Table, name: str, labels: Targets, classes: int) -> None:
    """Raises EscalaError DATA-LABEL for a label outside the classes, with its row and value."""
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(wrong):
        what = f"the label of row {wrong[0]:,} (from 0) is {labels[wrong[0]]}; labels out of range: {len(wrong):,}"
        raise fault(table.where, what, f"labels go from 0 to {classes - 1}", column=name, code="DATA-LABEL")


def _require(table: Table, schema: Any, name: str, expected: str) -> None:
    if name not in schema.names:
        raise fault(table.where, f"is missing; there are {', '.join(schema.names)}", expected, column=name)


def _check_type(table: Table, schema: Any, name: str, expected: str) -> None:
    types = arrow().types
    kind = schema.field(name).type
    fits = types.is_integer(kind) if expected == "whole numbers" else _is_text(kind)
    if not fits:
        raise _wrong_type(table, name, kind, expected)


def _check_image(table: Table, schema: Any, name: str) -> None:
    kind = schema.field(name).type
    if arrow().types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        kind = kind.field(kind.get_field_index("bytes")).type
    if not _is_binary(kind):
        raise _wrong_type(table, name, schema.field(name).type, "the bytes of image files")


def _check_answers(table: Table, schema: Any) -> None:
    types = arrow().types
    kind = schema.field("answers").type
    fits = types.is_struct(kind) and all(kind.get_field_index(name) >= 0 for name in ("text", "answer_start"))
    if fits:
        text, start = (kind.field(kind.get_field_index(name)).type for name in ("text", "answer_start"))
        fits = all(types.is_list(each) or types.is_large_list(each) for each in (text, start))
        fits = fits and _is_text(text.value_type) and types.is_integer(start.value_type)
    if not fits:
        raise _wrong_type(table, "answers", kind, "text and answer_start, a list each")


def _is_text(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_binary(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def _wrong_type(table: Table, name: str, kind: Any, expected: str) -> EscalaError:
    return fault(table.where, f"is of the type {kind}", f"expected {expected}", column=name)


def _class_names(schema: Any, label: str) -> tuple[str, ...]:
    """The names of the classes from the description that the hub keeps in a file's schema; none where it has none."""
    try:
        described = json.loads((schema.metadata or {})[b"huggingface"])
        names = described["info"]["features"][label]["names"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return ()
    return tuple(names) if isinstance(names, list) and all(isinstance(name, str) for name in names) else ()
