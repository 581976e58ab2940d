from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from workload_cases import side

from escala.terms.errors import EscalaError
from escala.workloads.squad_judge import LONGEST, best_spans, judge_of


def logits_for(spans: list[tuple[int, int]], tokens: int = 12) -> torch.Tensor:
    """Highest where each row's span begins and ends."""
    made = torch.zeros(len(spans), tokens, 2)
    for row, (first, last) in enumerate(spans):
        made[row, first, 0] = made[row, last, 1] = 5
    return made


def questions(*numbers: int) -> torch.Tensor:
    return torch.tensor([[0, 0, number] for number in numbers])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**31), st.integers(1, 70), st.floats(0, 1))
def test_the_best_span_is_that_of_a_search_through_all(seed: int, tokens: int, share: float) -> None:
    drawn = torch.Generator().manual_seed(seed)
    logits = torch.randint(-9, 9, (2, tokens, 2), generator=drawn).float()
    context = torch.rand(2, tokens, generator=drawn) < share
    for row, found in enumerate(best_spans(logits, context).tolist()):
        best, expected = -torch.inf, [-1, -1]
        for first in range(tokens):
            for last in range(first, min(tokens, first + LONGEST)):
                total = float(logits[row, first, 0] + logits[row, last, 1])
                if context[row, first] and context[row, last] and total > best:
                    best, expected = total, [first, last]
        assert found == expected


def test_an_answer_longer_than_thirty_tokens_is_not_told() -> None:
    everything = torch.ones(1, 60, dtype=torch.bool)
    assert best_spans(logits_for([(3, 32)], 60), everything).tolist() == [[3, 32]]
    assert best_spans(logits_for([(3, 33)], 60), everything).tolist() != [[3, 33]]


def test_an_answer_does_not_end_before_it_begins() -> None:
    ((first, last),) = best_spans(logits_for([(8, 3)]), torch.ones(1, 12, dtype=torch.bool)).tolist()
    assert first <= last


def test_words_are_judged_not_tokens() -> None:
    """The accepted answer is "two three", tokens 5 and 6."""
    score = judge_of(side(3), "told")
    assert score(logits_for([(5, 6), (5, 7), (9, 9)]), questions(0, 1, 2)).tolist() == pytest.approx([1.8, 1.0])
    assert score(logits_for([(9, 9)]), questions(1)).tolist() == [0, 0]


def test_what_is_outside_the_context_is_never_told() -> None:
    logits = logits_for([(5, 6)])
    logits[0, 1] = 50
    logits[0, :, 1][2] = 50
    assert judge_of(side(1), "told")(logits, questions(0)).tolist() == [1, 1]


def test_the_best_accepted_answer_counts() -> None:
    line = {"context": "one two", "offsets": [[0, 0], [0, 3], [4, 7]], "answers": ["nine", "One", "one two three"]}
    score = judge_of(json.dumps(line).encode() + b"\n", "told")
    assert score(logits_for([(1, 1)], 4), questions(0)).tolist() == [1, 1]
    assert score(logits_for([(1, 2)], 4), questions(0)).tolist() == pytest.approx([0.8, 0])


def test_rows_cut_short_are_judged_within_what_is_left() -> None:
    assert judge_of(side(1), "told")(logits_for([(5, 6)], 8), questions(0)).tolist() == [1, 1]


def test_a_row_without_context_scores_nothing() -> None:
    line = {"context": "one", "offsets": [[0, 0], [0, 0]], "answers": ["one"]}
    assert judge_of(json.dumps(line).encode(), "told")(logits_for([(0, 1)], 2), questions(0)).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "has no line among the 0"),
        (b'{"context": "one"}\n', "damaged line"),
        (b'{"context": "one", "offsets": [[0]], "answers": []}\n', "damaged line"),
        (b'{"context": "on', "damaged line"),
        (b"\xff\n", "damaged line"),
    ],
)
def test_a_damaged_side_file_is_refused_with_the_question(content: bytes, told: str) -> None:
    with pytest.raises(EscalaError, match=told) as caught:
        judge_of(content, "told")(logits_for([(5, 6)]), questions(0))
    assert caught.value.code == "DATA-QA"
    assert caught.value.where == "told, question 0"


@given(st.binary(max_size=60))
def test_no_side_file_ends_in_another_error(content: bytes) -> None:
    with pytest.raises(EscalaError):
        judge_of(content, "told")(logits_for([(5, 6)]), questions(0))


def test_lines_that_are_not_asked_for_may_be_anything() -> None:
    score = judge_of(b"damaged\n" + side(1), "told")
    assert score(logits_for([(5, 6)]), questions(1)).tolist() == [1, 1]
