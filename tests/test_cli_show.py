from __future__ import annotations

from pathlib import Path

import pytest

from escala.cli_show import form_of


@pytest.mark.parametrize(
    ("asked", "out", "form"),
    [
        (None, None, "terminal"),
        (None, Path("a/table.md"), "markdown"),
        (None, Path("PAGE.HTML"), "html"),
        (None, Path("rows.parquet"), "parquet"),
        (None, Path("notes.txt"), "terminal"),
        ("csv", Path("table.md"), "csv"),
        ("mlperf", None, "mlperf"),
    ],
)
def test_the_ending_of_a_file_is_its_format_where_none_was_asked_for(
    asked: str | None, out: Path | None, form: str
) -> None:
    assert form_of(asked, out) == form
