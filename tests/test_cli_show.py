from __future__ import annotations

from pathlib import Path

import pytest

from escala.cli_show import form_of
from escala.terms.errors import EscalaError


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


def test_a_text_is_not_written_under_the_name_of_a_chart() -> None:
    with pytest.raises(EscalaError, match=r"CFG-USAGE.*a\.PNG would be a chart.*--figures DIR"):
        form_of(None, Path("b/a.PNG"))
    assert form_of("terminal", Path("a.png")) == "terminal"
