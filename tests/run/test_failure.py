"""What is said of an exception in a seat."""

from __future__ import annotations

import pytest
import torch

from escala.run.failure import failure_of

ACCOUNT = (
    " GPU 0 has a total capacity of 139.80 GiB of which 122.38 GiB is free. Including non-PyTorch memory, this"
    " process has 17.41 GiB memory in use."
)
ADVICE = (
    " Of the allocated memory 15.56 GiB is allocated by PyTorch, and 361.79 MiB is reserved by PyTorch but"
    " unallocated. See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html)"
)
ASKED = "CUDA out of memory. Tried to allocate 198.00 MiB"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (torch.OutOfMemoryError(f"{ASKED}.{ACCOUNT}{ADVICE}"), ASKED),
        (torch.OutOfMemoryError(f"{ASKED}.{ACCOUNT} 16.00 GiB allowed;{ADVICE}"), f"{ASKED}; 16.00 GiB allowed"),
        (torch.OutOfMemoryError("something new, out of memory"), "something new, out of memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes.\nC++"), None),
        (MemoryError(), "MemoryError"),
    ],
)
def test_what_ran_out_of_memory_is_told_in_short(error: BaseException, told: str | None) -> None:
    found = failure_of(error, ("cpu",))
    assert found.outcome == "out of memory"
    assert found.reason == (told if told is not None else str(error).splitlines()[0])
    assert [reading.what for reading in found.readings] == ["peak memory"]
