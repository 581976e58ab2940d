"""Bytes that live at once, counted by storage."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from escala.plan.live_bytes import LiveBytes, bytes_of


@settings(deadline=None)
@given(st.lists(st.integers(1, 500), min_size=1, max_size=10))
def test_what_is_freed_is_counted_no_more_and_the_peak_stays(sizes: list[int]) -> None:
    with LiveBytes(()) as live:
        held = [torch.empty(size, dtype=torch.float32) for size in sizes]
        assert live.now == live.peak == 4 * sum(sizes)
        held.clear()
        assert (live.now, live.peak) == (0, 4 * sum(sizes))
        live.mark()
        assert live.peak == 0


def test_views_and_known_tensors_are_nothing_new() -> None:
    known = torch.empty(10)
    with LiveBytes([known]) as live:
        assert known.t().view(2, 5).numel() == 10
        made = torch.empty(6)
        parts = made.split(2)
        known.add_(1)
    assert live.peak == 24 == bytes_of([made, *parts])


def test_what_is_set_apart_is_left_out_from_then_on() -> None:
    with LiveBytes(()) as live:
        first, second = torch.empty(100), torch.empty(10)
        live.apart(first)
        third = torch.empty(20)
    assert live.peak_beside == 440
    assert live.peak == bytes_of([first, second, third]) == 520
    with LiveBytes(()) as live:
        first = torch.empty(100)
        live.apart(first)
        third = torch.empty(120)
    assert (live.peak_beside, bytes_of([first, third])) == (480, live.peak)


def test_fake_tensors_count_like_real_ones() -> None:
    with FakeTensorMode(), LiveBytes(()) as live:
        one = torch.empty(100, 100)
        other = one @ one
        del one
    assert (live.now, live.peak) == (40_000, 80_000)
    assert other.shape == (100, 100)
