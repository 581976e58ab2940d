from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from escala.execution.draws import at_step, kept, key_of, stream

CPU = torch.device("cpu")
MASK = 2**64 - 1


def split_mix(seed: int, many: int) -> list[int]:
    """As splitmix64.c writes it."""
    found = []
    for _ in range(many):
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = seed
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        found.append(z ^ (z >> 31))
    return found


def unsigned(values: torch.Tensor) -> list[int]:
    return [value & MASK for value in values.tolist()]


def test_the_stream_is_split_mix_64() -> None:
    # Known outputs for the seed 1234567.
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert unsigned(stream(torch.tensor([1234567]), 5)[0]) == known == split_mix(1234567, 5)


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_key_has_the_stream_of_split_mix_64(key: int) -> None:
    assert unsigned(stream(torch.tensor([key]), 3)[0]) == split_mix(key & MASK, 3)


@given(
    st.integers(0, MASK), st.integers(0, 1000), st.integers(1, 40), st.integers(1, 9), st.integers(0, 39), st.data()
)
def test_a_row_gets_the_same_of_however_many_it_is_one(
    key: int, first: int, rows: int, width: int, cut: int, data: st.DataObject
) -> None:
    whole = kept(key, first, rows, width, 0.5, CPU)
    cut = min(cut, rows)
    parts = [kept(key, first, cut, width, 0.5, CPU), kept(key, first + cut, rows - cut, width, 0.5, CPU)]
    assert torch.equal(torch.cat(parts), whole)
    narrower = data.draw(st.integers(1, width))
    assert torch.equal(kept(key, first, rows, narrower, 0.5, CPU), whole[:, :narrower])


@given(st.integers(0, MASK), st.integers(0, 5))
def test_a_step_is_a_place_in_the_stream_for_the_host_as_for_a_counter_on_the_device(key: int, step: int) -> None:
    counted = at_step(key, torch.tensor(step))
    assert isinstance(counted, torch.Tensor)
    assert at_step(key, step) == split_mix(key, step + 1)[-1] == int(counted) & MASK
    assert torch.equal(kept(counted, 3, 4, 5, 0.5, CPU), kept(int(counted) & MASK, 3, 4, 5, 0.5, CPU))


def test_as_many_are_dropped_as_asked_in_rows_columns_and_pairs() -> None:
    for dropped in (0.1, 0.5, 0.9):
        mask = (~kept(key_of("a"), 0, 1000, 1000, dropped, CPU)).double()
        spread = (dropped * (1 - dropped)) ** 0.5
        # A million draws; deviations beyond five of their own spreads come once in a million.
        assert abs(mask.mean() - dropped) < 5 * spread / 1000
        for axis in (0, 1):
            lines = mask.mean(axis)
            assert (lines - dropped).abs().max() < 5.5 * spread / 1000**0.5
            assert abs(lines.var() / (spread**2 / 1000) - 1) < 0.3
        away = mask - dropped
        for other in (away.roll(1, 0), away.roll(1, 1), away.roll((1, 1), (0, 1))):
            assert abs((away * other).mean()) < 5 * spread**2 / 1000


def test_keys_differ_with_every_word() -> None:
    words = [(0, "a", 0, 1), (0, "a", 1, 0), (1, "a", 0, 0), (0, "b", 0, 0), (0, "a", 0, 0), (0, "a 0", 0)]
    # Names come last but for numbers, so that no two ways to part a text are mixed up.
    assert len({key_of(*one) for one in words[:5]}) == 5
    masks = [kept(key_of(*one), 0, 8, 64, 0.5, CPU) for one in words[:5]]
    agree = [(a == b).double().mean() for i, a in enumerate(masks) for b in masks[:i]]
    assert all(0.35 < float(share) < 0.65 for share in agree)


def test_nothing_and_nearly_everything_can_be_dropped() -> None:
    assert kept(1, 0, 20, 500, 0.0, CPU).all()
    assert kept(1, 0, 20, 500, 1 - 2**-32, CPU).sum() < 3
    assert kept(1, 0, 0, 3, 0.5, CPU).shape == (0, 3)
