"""Freed host memory stays with the process; judged in a child, because the setting cannot be taken back."""

from __future__ import annotations

import subprocess
import sys

import pytest

_STEPS = """
import resource, sys
import torch
from escala.execution.allocator import keep_freed_memory

def steps():
    for _ in range(20):
        block = [torch.ones(4_000_000), torch.ones(9_000_000)]
        del block

kept = keep_freed_memory() if sys.argv[1] == "keep" else None
steps()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
steps()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _faults(word: str) -> tuple[str, int]:
    child = subprocess.run([sys.executable, "-c", _STEPS, word], capture_output=True, text=True, check=True)
    kept, faults = child.stdout.split()
    return kept, int(faults)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mallopt is glibc's")
def test_pages_of_freed_blocks_are_not_mapped_again() -> None:
    kept, faults = _faults("keep")
    _, by_default = _faults("leave")
    assert kept == "True"
    assert faults < 200
    assert by_default > 10 * faults + 1000
