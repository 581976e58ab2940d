"""The list of shipped experiments."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from escala.plan.studies import summaries
from escala.report.studies_text import studies_text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_every_study_wraps_to_the_terminal(width: int) -> None:
    text = studies_text(summaries(), width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    told = " ".join(text.split())
    for name, title, about in summaries():
        assert f"{name} {title}" in told
        assert " ".join(about.split()) in told


def test_no_study_is_an_empty_page() -> None:
    assert studies_text([]) == ""
