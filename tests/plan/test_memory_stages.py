"""Memory of a network that is cut: whose weights, and how many rows are on their way."""

from __future__ import annotations

from typing import Any

import pytest
from trials import trial_of

from escala.plan.memory import estimates
from escala.plan.preflight import Facts
from escala.plan.traces import PartTrace, Trace, key_of
from escala.terms.experiment import ExecutionSpec, StrategyOptions, TrainSpec, WorkloadSpec
from escala.terms.record import DataUse
from escala.terms.trial import StrategyUse

# Four parts of equal cost; the last one's pass has more on the way than it saves.
ALONG = tuple(PartTrace(300, 8, 20, 30 if number < 3 else 90, 100) for number in range(4))
STAGE = 600 + 1200 + 600 + 600
"""Weights, state, the snapshot and gradients of two parts."""


def expected(name: str, ways: int, along: tuple[PartTrace, ...] = ALONG, **options: Any) -> list[int]:
    """Peak by device in the order of seats."""
    use = StrategyUse(name, ways, "cuda", options=StrategyOptions(**options))
    train, execution = TrainSpec(steps=1, batch=64), ExecutionSpec()
    trial = trial_of(use, train=train)
    trace = Trace(key_of(use, train, execution), parameters=1200, gradients=1200, optimizer=2400, along=along)
    used = DataUse(name="d", origin="real", where="w", digest="x", rows={"train": 70}, classes=10)
    found = estimates(trial, Facts(WorkloadSpec("mlp"), "d", used, 1, 1, (), traces=(trace,)))
    return [found[f"cuda:{number}"].peak for number in range(len(found))]


def test_stages_hold_the_rows_that_are_forward_and_not_yet_back() -> None:
    # A stage saves 8 + 20 + 20 of each microbatch; the first one's way back has 10 more, the last one's 70 more.
    assert expected("pipeline", 2, schedule="gpipe", microbatches=4) == [STAGE + 4 * 48 + 10, STAGE + 4 * 48 + 70]
    # 1F1B: as many as stages follow, and one.
    assert expected("pipeline", 2, microbatches=4) == [STAGE + 2 * 48 + 10, STAGE + 48 + 70]
    assert expected("layers", 2) == [STAGE + 48 + 10, STAGE + 48 + 70]


def test_more_microbatches_take_no_more_room_in_1f1b() -> None:
    assert expected("pipeline", 2, microbatches=4) == expected("pipeline", 2, microbatches=16)
    assert expected("pipeline", 2, schedule="gpipe", microbatches=4) < expected(
        "pipeline", 2, schedule="gpipe", microbatches=16
    )


def test_a_cut_that_is_given_decides_who_holds_what() -> None:
    first, last = expected("layers", 2, split=(1, 3))
    assert last - first > 2 * (300 + 600 + 300 + 300)
    interleaved = expected("pipeline", 2, schedule="interleaved", chunks=2, microbatches=4)
    # Two stages of one part each.
    assert all(peak > STAGE for peak in interleaved)


def test_replicas_send_gradients_from_a_copy() -> None:
    alone, several = expected("pipeline", 2, microbatches=4), expected("pipeline", 4, replicas=2, microbatches=4)
    assert len(several) == 4
    assert max(several) == STAGE + 600
    assert max(alone) < max(several)


def test_a_network_that_cannot_be_cut_has_no_estimate() -> None:
    assert expected("pipeline", 2, along=()) == []
    assert expected("layers", 4, along=ALONG[:3]) == []


@pytest.mark.parametrize("name", ["pipeline", "layers"])
def test_rows_that_pass_at_once(name: str) -> None:
    use = StrategyUse(name, 2, "cuda")
    key = key_of(use, TrainSpec(batch=64), ExecutionSpec())
    assert key.cut
    assert key.rows == (64 if name == "layers" else 8)
    assert key_of(use, TrainSpec(batch=64), ExecutionSpec(microbatch=5)).rows == 5
