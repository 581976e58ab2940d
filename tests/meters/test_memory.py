from __future__ import annotations

import subprocess
import sys

import pytest

from escala.meters.memory import with_outside
from escala.terms.record import Reading

_HELD = """
import sys
import numpy as np
from escala.meters.memory import peak_resident
before = peak_resident()
held = np.ones(int(sys.argv[1]), np.uint8)
del held
print(before, peak_resident())
"""


def test_the_peak_is_seen_after_what_made_it_is_gone() -> None:
    ran = subprocess.run([sys.executable, "-c", _HELD, "200000000"], capture_output=True, text=True, check=True)
    before, after = map(int, ran.stdout.split())
    assert 190e6 < after - before < 260e6


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere getrusage says what it should")
def test_a_large_parent_is_not_counted() -> None:
    ballast = bytearray(b"x") * 900_000_000
    ran = subprocess.run([sys.executable, "-c", _HELD, "1"], capture_output=True, text=True, check=True)
    assert len(ballast) == 900_000_000
    assert int(ran.stdout.split()[1]) < 700e6


def test_what_no_allocator_counts_is_in_the_peak_of_its_device_alone() -> None:
    found = (
        Reading("peak memory", "cpu", 5.0, "B", "counter"),
        Reading("peak memory", "cuda:0", 7.0, "B", "counter"),
        Reading("energy", "cuda:0", 7.0, "J", "counter"),
        Reading("peak memory", "cuda:0", None, "B", "counter", "unknown"),
    )
    assert [one.value for one in with_outside(found, "cuda:0", 3)] == [5.0, 10.0, 7.0, None]
    assert with_outside(found, "cuda:1", 3) == found
