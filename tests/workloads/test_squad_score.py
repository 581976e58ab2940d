"""Expected values are those of SQuAD v1.1's evaluation, worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.workloads.squad_score import exact_match, f1, normalised


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat", "cat"),
        ("  an  apple,\ta\npear ", "apple pear"),
        ("there", "there"),
        ("A. an THE", ""),
        # Punctuation goes first, so what is left of "a-b" is one word and of "a.m." another.
        ("a-b", "ab"),
        ("10 a.m.", "10 am"),
        # Signs outside ASCII stay, and an article may stand beside them.
        ("«the» café", "« » café"),
        ("theatre of the absurd", "theatre of absurd"),
        ("", ""),
    ],
)
def test_normalised(text: str, expected: str) -> None:
    assert normalised(text) == expected


@pytest.mark.parametrize(
    ("told", "answers", "matches", "overlap"),
    [
        ("Denver Broncos", ["Denver Broncos"], 1, 1),
        ("the Denver Broncos!", ["denver  broncos"], 1, 1),
        # 2 words in common of 3 and of 2: precision 2/3, recall 1, F1 4/5.
        ("Denver Broncos team", ["Denver Broncos"], 0, 0.8),
        # The best of the accepted answers counts.
        ("Santa Clara", ["Levi's Stadium", "Santa Clara, California", "Clara"], 0, 0.8),
        ("Santa Clara", ["Levi's Stadium", "Santa Clara"], 1, 1),
        ("Paris", ["London"], 0, 0),
        # A word counts as often as it stands on both sides: 1 of 2, 1 of 1.
        ("ding ding", ["ding"], 0, 2 / 3),
        ("dong ding", ["ding dong"], 0, 1),
        ("", ["London"], 0, 0),
        # Nothing but an article: the same, yet no word in common.
        ("the", ["a"], 1, 0),
        ("anything", [], 0, 0),
    ],
)
def test_scores(told: str, answers: list[str], matches: float, overlap: float) -> None:
    assert exact_match(told, answers) == matches
    assert f1(told, answers) == pytest.approx(overlap)


words = st.text(alphabet="abthe .,'", max_size=20)


@given(words, st.lists(words, max_size=4))
def test_scores_keep_to_their_range(told: str, answers: list[str]) -> None:
    assert 0 <= f1(told, answers) <= 1
    assert exact_match(told, answers) in (0, 1)
    if f1(told, answers) < 1 and normalised(told):
        assert all(normalised(told) != normalised(answer) for answer in answers)
        assert exact_match(told, answers) == 0


@given(words, words)
def test_f1_does_not_ask_which_side_is_which(one: str, other: str) -> None:
    assert f1(one, [other]) == pytest.approx(f1(other, [one]))


@given(words)
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalised(normalised(text)) == normalised(text)
