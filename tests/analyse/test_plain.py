"""What of a recorded reason reaches a screen."""

from __future__ import annotations

import pytest

from escala.analyse.plain import LONGEST_REASON, reason_text

ASKED = "rank 1: CUDA out of memory. Tried to allocate 198.00 MiB"
ACCOUNT = (
    ". GPU 0 has a total capacity of 139.80 GiB of which 122.38 GiB is free. Including non-PyTorch memory, this "
    "process has 17.41 GiB memory in use."
)
ADVICE = (
    " Of the allocated memory 15.56 GiB is allocated by PyTorch, and 361.79 MiB is reserved by PyTorch but "
    "unallocated. See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html)"
)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (ASKED + ACCOUNT + ADVICE, ASKED),
        (f"{ASKED}{ACCOUNT} 16.00 GiB allowed;{ADVICE}", f"{ASKED}; 16.00 GiB allowed"),
        ("CUDA out of memory. Tried to allocate 2 B.", "CUDA out of memory. Tried to allocate 2 B."),
        ("can't allocate memory: tried to allocate 8 bytes.", "can't allocate memory: tried to allocate 8 bytes."),
        ("a\x1b[31mred\nend", "ared end"),
        (None, ""),
    ],
)
def test_reasons_are_safe_to_show_and_those_of_full_cards_short(reason: str | None, told: str) -> None:
    assert reason_text(reason) == told


def test_the_middle_of_any_other_long_reason_is_left_out() -> None:
    assert len(reason_text("x" * 1000)) == LONGEST_REASON
