from __future__ import annotations

import pytest

from escala.run.load import ProcessorTime, other_load, processor_time


def test_the_share_of_others() -> None:
    assert other_load(ProcessorTime(100, 10), ProcessorTime(110, 18)) == pytest.approx(0.2)
    assert other_load(ProcessorTime(100, 10), ProcessorTime(100, 10)) is None
    # Clocks of different steps may give us more than there was.
    assert other_load(ProcessorTime(100, 10), ProcessorTime(101, 12)) == 0.0


def test_our_own_time_is_part_of_the_busy_time() -> None:
    begin = processor_time()
    while (end := processor_time()).own - begin.own < 0.2:
        pass
    assert end.busy - begin.busy >= 0.1
