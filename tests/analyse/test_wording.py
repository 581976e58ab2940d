"""Figures as text."""

from __future__ import annotations

import re
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.analyse.bootstrap import interval
from escala.analyse.plain import plain
from escala.analyse.row import Interval
from escala.analyse.wording import counted, interval_text, joules, listed, number, percent, seconds, size, times_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1.00"),
        (9.996, "10.0"),
        (0.012345, "0.0123"),
        (12.345, "12.3"),
        (123.45, "123"),
        (588_519.4, "588,519"),
        (-2.5, "-2.50"),
        (1e-12, "1.00e-12"),
        (1e15, "1.00e+15"),
    ],
)
def test_numbers_have_three_digits_that_count(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Interval(1.312, 1.249, 1.381, (1.0, 2.0)), "1.31 [1.25, 1.38]"),
        (Interval(1.312, 1.312, 1.312, (1.312,)), "1.31"),
        (Interval(11_429, 11_215, 11_538, (1.0, 2.0)), "11429 [11215, 11538]"),
    ],
)
def test_intervals_stand_in_brackets_with_equal_digits(found: Interval, text: str) -> None:
    assert interval_text(found) == text


def test_a_speedup_below_one_has_two_digits() -> None:
    assert times_text(Interval(0.3149, 0.3051, 0.3249, (1.0, 2.0))) == "0.31x [0.31, 0.32]"
    assert times_text(Interval(1.0, 1.0, 1.0, (1.0,))) == "1.00x"


def test_small_words() -> None:
    assert (seconds(0.0004), seconds(12.345), percent(0.895)) == ("0.400 ms", "12.3 s", "89.5 %")
    assert (counted(1, "run"), counted(2_000, "run")) == ("1 run", "2,000 runs")
    assert (listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])) == ("a", "a and b", "a, b and c")
    assert (size(300 * 2**20), size(5 * 2**29)) == ("300 MiB", "2.50 GiB")


@given(value=st.floats(min_value=1e-9, max_value=1e11))
def test_a_number_reads_back_to_three_digits(value: float) -> None:
    assert float(number(value).replace(",", "")) == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain name", "plain name"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x9b31mred", "red"),
        ("two\nlines\tand\r\nmore", "two lines and more"),
        ("\u202egnp.exe", "gnp.exe"),
        ("zero\u200bwidth", "zerowidth"),
        ("line\u2028end", "line end"),
        ("שלום", "שלום"),
        ("bell\x07\x00\x7f", "bell"),
        ("  spaced  out ", "spaced out"),
    ],
)
def test_what_a_screen_would_obey_is_taken_out(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(text=st.text())
def test_plain_text_is_printable_and_stays_as_it_is(text: str) -> None:
    once = plain(text)
    assert "\x1b" not in once
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]", once)
    assert plain(once) == once


@given(text=st.text(min_size=1), longest=st.integers(min_value=4, max_value=30))
def test_a_long_name_keeps_its_ends(text: str, longest: int) -> None:
    whole, short = plain(text), plain(text, longest)
    assert len(short) <= longest
    if len(whole) > longest:
        assert (short[0], short[-1]) == (whole[0], whole[-1])
    else:
        assert short == whole


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((588.0,), "588 J"),
        ((1170.0,), "1.17 kJ"),
        ((1.17e6, 1.16e6, 1.19e6), "1.17 [1.16, 1.19] MJ"),
        ((inf,), "never"),
        ((220.0, 275.0, inf), "275 [220, never] J"),
    ],
)
def test_joules_come_in_the_unit_that_suits_them(values: tuple[float, ...], text: str) -> None:
    assert joules(interval(values, never=True)) == text
