from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from escala.data.base import Request
from escala.data.split import split_rows
from escala.terms.errors import EscalaError, Exit

TARGETS = np.tile(np.arange(10), 600)

labels = st.lists(st.integers(0, 4), min_size=20, max_size=400).map(lambda rows: np.array(rows, np.int64))


def request(validation: float = 1 / 12, limit: int | None = None) -> Request:
    return Request("here", validation, limit)


def test_equal_classes_are_dealt_out_equally() -> None:
    kept = split_rows(TARGETS, request(limit=1000))
    assert np.bincount(TARGETS[kept.validation]).tolist() == [50] * 10
    assert np.bincount(TARGETS[kept.train]).tolist() == [100] * 10


def test_the_published_size() -> None:
    kept = split_rows(np.tile(np.arange(10), 6000), request())
    assert (len(kept.train), len(kept.validation)) == (55_000, 5_000)


def test_validation_rows_do_not_depend_on_the_limit() -> None:
    free, limited = split_rows(TARGETS, request()), split_rows(TARGETS, request(limit=17))
    np.testing.assert_array_equal(free.validation, limited.validation)


def test_a_smaller_limit_takes_some_of_a_larger_ones_rows() -> None:
    rows = [set(split_rows(TARGETS, request(limit=limit)).train.tolist()) for limit in (1, 9, 100, 2000)]
    for smaller, larger in pairwise(rows):
        assert smaller < larger


def test_rows_are_picked_at_random_within_a_class() -> None:
    validation = split_rows(TARGETS, request()).validation
    # Neither the first rows nor every twelfth.
    assert len(set(np.diff(validation).tolist())) > 20
    assert validation[-1] > 5 * len(TARGETS) // 6


def test_no_validation() -> None:
    kept = split_rows(TARGETS, request(validation=0.0))
    assert len(kept.validation) == 0
    np.testing.assert_array_equal(kept.train, np.arange(len(TARGETS)))


@given(labels, st.floats(0.06, 0.5))
def test_every_row_once_and_every_class_in_proportion(targets: np.ndarray, share: float) -> None:
    # A share of one half can take both rows of a class of two; that is refused, and tested below.
    assume(np.bincount(targets).min(where=np.bincount(targets) > 0, initial=len(targets)) > 2)
    kept = split_rows(targets, request(share))
    np.testing.assert_array_equal(np.sort(np.concatenate([kept.train, kept.validation])), np.arange(len(targets)))
    assert (np.diff(kept.train) > 0).all()
    assert len(kept.validation) == round(len(targets) * share)
    held_out = np.bincount(targets[kept.validation], minlength=5)
    assert (np.abs(held_out - np.bincount(targets, minlength=5) * len(kept.validation) / len(targets)) <= 1).all()


@given(labels, st.integers(1, 20))
def test_a_limit_keeps_the_proportions(targets: np.ndarray, limit: int) -> None:
    kept = split_rows(targets, request(0.0, limit))
    assert len(kept.train) == limit
    counts = np.bincount(targets[kept.train], minlength=5)
    assert (np.abs(counts - np.bincount(targets, minlength=5) * limit / len(targets)) <= 1).all()


@pytest.mark.parametrize("limit", [0, -1, 5501])
def test_a_limit_above_what_is_left(limit: int) -> None:
    with pytest.raises(EscalaError) as caught:
        split_rows(TARGETS, request(limit=limit))
    assert caught.value.exit == Exit.CONFIG
    assert caught.value.where == "workload.limit"
    assert "1 to 5,500 training rows" in caught.value.expected


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan"), 1e-9])
def test_a_share_that_holds_out_no_number_of_rows(share: float) -> None:
    with pytest.raises(EscalaError) as caught:
        split_rows(TARGETS, request(share))
    assert (caught.value.code, caught.value.where) == ("CFG-RANGE", "workload.validation")


def test_a_share_that_takes_a_whole_class() -> None:
    with pytest.raises(EscalaError, match="no training row of class 1"):
        split_rows(np.array([0] * 50 + [1]), request(0.9))
