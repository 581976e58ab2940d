"""Parquet files as the Hugging Face hub lays them out: `train-00000-of-00001.parquet`, or a folder for each part.

Read row group by row group, with the page checksums that a file has. Needs the extra `datasets`, which brings
pyarrow. The layout is described at https://huggingface.co/docs/hub/datasets-file-names-and-splits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from escala.data.base import Part, Source
from escala.data.paths import open_file, path_error
from escala.data.table import Batch, Table, arrow, arrow_errors, columns_of, fault
from escala.data.table_images import TableImages
from escala.data.table_texts import TableTexts
from escala.data.texts import TextSource

ENDING = ".parquet"
_MAGIC = b"PAR1"
_PART_OF_WORD: dict[str, Part] = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
_SHARD = re.compile(r"(?P<word>[^.]*?)-(?P<number>\d{5})-of-(?P<count>\d{5})(-[0-9a-f]+)?\.parquet")
_LOOKED_AT = 64
"""Names of a folder of which one must be a parquet file, so that a folder of a million images is not listed."""
_BUFFER = 1024 * 1024


@dataclass(frozen=True)
class ParquetTable(Table):
    """One part: its files in order."""

    files: tuple[Path, ...]

    @property
    def where(self) -> str:
        return str(self.files[0])

    def schema(self) -> Any:
        """The schema of the first file; all others must have the same names and types."""
        first = None
        for path in self.files:
            with _opened(path) as file:
                schema = file.schema_arrow
            if first is not None and not schema.equals(first):
                raise fault(str(path), "has other columns than the first file of its part")
            first = first or schema
        return first

    def batches(self, columns: Sequence[str], at_once: int) -> Iterator[Batch]:
        first = 0
        for path in self.files:
            with _opened(path) as file:
                _check_promised(str(path), file.metadata.num_rows, _rows_of_groups(file))
                for group in range(file.num_row_groups):
                    where = f"{path}, row group {group}"
                    with arrow_errors(where, columns):
                        batches = file.iter_batches(
                            at_once, row_groups=[group], columns=list(columns), use_threads=False
                        )
                    begin = first
                    while (batch := _next(batches, where, columns)) is not None:
                        yield Batch(where, first, {name: batch.column(name) for name in columns})
                        first += batch.num_rows
                    # The heads of pages have no checksum, and arrow ends where one of them says so.
                    _check_promised(where, file.metadata.row_group(group).num_rows, first - begin)


def recognise(path: Path) -> Source | TextSource | None:
    """The set in a folder of parquet files, in a folder's only folder of them, or in one file; None: no such files.

    Raises EscalaError DATA-PARQ for a damaged file or one of other columns, ENV-EXTRA without pyarrow.
    """
    if path.is_dir():
        return _in_folder(path, path.name)
    if path.is_file() and (path.suffix == ENDING or _begins(path)):
        part = _PART_OF_WORD.get(re.split(r"[-.]", path.name)[0], "train")
        return source_of(path.stem, str(path), {part: ParquetTable((path,))}, ())
    return None


def source_of(name: str, told: str, tables: dict[Part, Table], notes: tuple[str, ...]) -> TableImages | TableTexts:
    """A set from the tables of its parts. Rows for validation stand in for test where nothing else does.

    Raises EscalaError DATA-PARQ where columns are missing, of another type or not alike in all parts.
    """
    found = {part: columns_of(table) for part, table in tables.items()}
    columns = found.get("train") or next(iter(found.values()))
    for part, others in found.items():
        if (others.kind, others.label, others.content) != (columns.kind, columns.label, columns.content):
            raise fault(tables[part].where, f"holds {others.kind}", f"the other parts hold {columns.kind}")
    if "test" not in tables and "validation" in tables:
        notes = (*notes, "no rows for test are published: those for validation are used for it")
        tables = {("test" if part == "validation" else part): table for part, table in tables.items()}
    kind = TableImages if columns.kind == "images" else TableTexts
    return kind(name, told, tables, columns, notes)


def _in_folder(folder: Path, name: str) -> Source | TextSource | None:
    holding = [path for path in (folder, folder / "data") if path.is_dir() and _holds_some(path)]
    if holding:
        return _from_files(name, folder, sorted(path for path in holding[0].iterdir() if path.suffix == ENDING))
    inside = sorted(path for path in _some_of(folder) if path.is_dir())
    parts = [path for path in inside if path.name in _PART_OF_WORD and _holds_some(path)]
    if parts:
        files = [file for path in parts for file in sorted(path.iterdir()) if file.suffix == ENDING]
        return _from_files(name, folder, files)
    holders = [path for path in inside if _holds_some(path)]
    if len(holders) > 1:
        raise path_error(
            folder,
            f"holds several sets: {', '.join(path.name for path in holders)}",
            next_step=f"name one of them, such as {holders[0]}",
        )
    return _in_folder(holders[0], name) if holders else None


def _from_files(name: str, folder: Path, files: Sequence[Path]) -> Source | TextSource:
    by_part, left_out = dict[Part, list[Path]](), list[str]()
    for path in files:
        shard = _SHARD.fullmatch(path.name)
        word = shard["word"] if shard else path.stem if path.stem in _PART_OF_WORD else path.parent.name
        part = _PART_OF_WORD.get(word)
        if part is None:
            left_out.append(path.name)
            continue
        by_part.setdefault(part, []).append(path)
    for paths in by_part.values():
        _check_complete(paths)
    if "train" not in by_part:
        raise path_error(
            folder,
            f"holds no rows for train, but {', '.join(path.name for path in files[:5])}",
            expected=f"expected files such as train-00000-of-00001{ENDING}",
        )
    notes = (f"left out, since no part is called so: {', '.join(left_out[:5])}",) if left_out else ()
    tables: dict[Part, Table] = {part: ParquetTable(tuple(paths)) for part, paths in by_part.items()}
    return source_of(name, str(folder), tables, notes)


def _check_complete(paths: Sequence[Path]) -> None:
    shards = [shard for path in paths if (shard := _SHARD.fullmatch(path.name))]
    if not shards:
        return
    there = {int(shard["number"]) for shard in shards}
    count = int(shards[0]["count"])
    if missing := sorted(set(range(count)) - there):
        name = f"{shards[0]['word']}-{missing[0]:05}-of-{count:05}{ENDING}"
        raise fault(str(paths[0].parent), f"{name} is missing", f"{count} files make up this part")


def _holds_some(folder: Path) -> bool:
    return any(path.suffix == ENDING for path in _some_of(folder))


def _some_of(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in islice(entries, _LOOKED_AT)]
    except OSError:
        # Not seen to hold parquet files, then; the reader that is asked last says what is wrong with the folder.
        return []


def _begins(path: Path) -> bool:
    with open_file(path) as file:
        return file.read(len(_MAGIC)) == _MAGIC


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A parquet file whose footer was read. Raises EscalaError DATA-PATH, DATA-PARQ."""
    parquet = arrow("pyarrow.parquet")
    with open_file(path) as stream:
        with arrow_errors(str(path)):
            # Without `pre_buffer=False` arrow takes a whole row group into memory, however large it is.
            file = parquet.ParquetFile(stream, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True)
        yield file


def _rows_of_groups(file: Any) -> int:
    return sum(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))


def _check_promised(where: str, promised: int, rows: int) -> None:
    if rows != promised:
        raise fault(where, f"holds {rows:,} rows", f"{promised:,} are promised")


def _next(batches: Iterator[Any], where: str, columns: Sequence[str]) -> Any:
    with arrow_errors(where, columns):
        return next(batches, None)
