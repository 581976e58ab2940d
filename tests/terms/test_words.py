from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.terms.words import did_you_mean, nearest


@pytest.mark.parametrize(
    ("word", "names", "expected"),
    [
        ("dpd", ["single", "ddp"], "ddp"),
        ("dropuot", ["dropout", "classes"], "dropout"),
        ("vocab_size", ["length", "vocabulary"], "vocabulary"),
        ("vocab_size", ["heads"], ""),
        ("LR", ["lr"], "lr"),
        ("entirely other", ["lr", "batch"], ""),
        ("anything", [], ""),
    ],
)
def test_the_nearest_name(word: str, names: list[str], expected: str) -> None:
    assert nearest(word, names) == expected


@given(st.text(), st.lists(st.text(min_size=1)))
def test_the_nearest_name_is_one_of_them_or_none(word: str, names: list[str]) -> None:
    assert nearest(word, names) in {*names, ""}


def test_the_question_is_asked_only_where_there_is_a_name() -> None:
    assert did_you_mean("lr") == "did you mean lr?"
    assert did_you_mean("") == ""
