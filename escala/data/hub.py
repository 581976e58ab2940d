"""Sets of the Hugging Face hub by name, `hub:OWNER/NAME` or `hub:OWNER/NAME:CONFIG`, through its own library.

The library downloads a set once, keeps it in its own cache and maps it from there; escala reads those tables as it
reads parquet files. Needs the extra `datasets`. No code of a set is run: from version 4 on the library has no option
for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from escala.data.base import Part
from escala.data.parquet import source_of
from escala.data.table import Batch, Table, arrow, arrow_errors
from escala.data.table_images import TableImages
from escala.data.table_texts import TableTexts
from escala.terms.errors import EscalaError

PREFIX = "hub:"
_NAME = re.compile(r"hub:(?P<set>[\w.-]+(/[\w.-]+)?)(:(?P<config>[\w.-]+))?", re.ASCII)
_PARTS: tuple[Part, ...] = ("train", "validation", "test")

Loader = Callable[[str, str | None], Mapping[str, Any]]
"""Takes a set's name and its configuration; returns tables of the library `datasets` by the name of their part."""


@dataclass(frozen=True)
class HubTable(Table):
    """One part, as the library has it."""

    told: str
    dataset: Any

    @property
    def where(self) -> str:
        return self.told

    def schema(self) -> Any:
        return self.dataset.features.arrow_schema

    def batches(self, columns: Sequence[str], at_once: int) -> Iterator[Batch]:
        chosen = self.dataset.select_columns(list(columns)).with_format("arrow")
        first = 0
        with arrow_errors(self.told, columns):
            for table in chosen.iter(at_once):
                rows = table.combine_chunks()
                yield Batch(self.told, first, {name: rows.column(name).chunk(0) for name in columns})
                first += rows.num_rows


def find(name: str, environ: Mapping[str, str], load: Loader | None = None) -> TableImages | TableTexts:
    """The set that the hub has under this name.

    Raises EscalaError CFG-VALUE for a name that cannot be, ENV-EXTRA without the library, ENV-NET where the set can
    neither be fetched nor is in the library's cache, DATA-PARQ where its columns are none that escala knows.
    """
    del environ
    asked = _NAME.fullmatch(name)
    if asked is None:
        expected = "hub:OWNER/NAME or hub:OWNER/NAME:CONFIG"
        raise EscalaError("CFG-VALUE", name, "is no name of a set on the hub", expected=expected)
    found = _fetched(load or _load, asked["set"], asked["config"])
    known = {part: HubTable(f"{name}, {part}", found[part]) for part in _PARTS if part in found}
    if "train" not in known:
        raise EscalaError("DATA-PARQ", name, f"has the parts {', '.join(found)}", expected="train among them")
    left_out = [part for part in found if part not in known]
    notes = (f"left out, since no part is called so: {', '.join(left_out)}",) if left_out else ()
    tables: dict[Part, Table] = dict(known)
    return source_of(name.removeprefix(PREFIX), name, tables, notes)


def _load(name: str, config: str | None) -> Mapping[str, Any]:
    tables: Mapping[str, Any] = arrow("datasets").load_dataset(name, config)
    return tables


def _fetched(load: Loader, dataset: str, config: str | None) -> Mapping[str, Any]:
    try:
        return load(dataset, config)
    except EscalaError:
        raise
    except Exception as error:
        # The library lets through the errors of half a dozen others; its first line says what it was.
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise EscalaError(
            "ENV-NET",
            f"https://huggingface.co/datasets/{dataset}",
            f"cannot be fetched: {said}",
            next_step="fetch its parquet files by other means, and name the folder that holds them instead",
        ) from error
