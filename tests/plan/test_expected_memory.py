"""What is divided by what, and what of it is there at the peak."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import trial_of

from escala.plan.estimate import Estimate
from escala.plan.memory import Division, division, estimate, estimates, peaks
from escala.plan.preflight import Facts
from escala.plan.traces import Trace, TraceKey, key_of
from escala.terms.experiment import ExecutionSpec, StrategyOptions, TrainSpec, WorkloadSpec
from escala.terms.record import DataUse
from escala.terms.trial import StrategyUse, Trial

TRACE = Trace(
    key=TraceKey(100),
    parameters=1200,
    buffers=10,
    gradients=1200,
    optimizer=2400,
    stepping=1200,
    largest=300,
    passing=5100,
    with_gradients=4900,
    judging=40,
)


def of(name: str, ways: int, trace: Trace = TRACE, **options: Any) -> Estimate:
    found = division(StrategyUse(name, ways, "cuda", options=StrategyOptions(**options)))
    assert found is not None
    return estimate(trace, found[0])


def test_one_seat_peaks_where_most_is_there_at_once() -> None:
    # Weights, buffers, state and the snapshot of weights and buffers are there all the time.
    always = 1200 + 10 + 2400 + 1210
    assert of("single", 1).peak == always + 5100
    # With few rows the step of the optimiser, with gradients, is the highest point.
    few = msgspec.structs.replace(TRACE, passing=150, with_gradients=1300)
    assert of("single", 1, few).peak == always + 1200 + 1200
    # And with no room for a step and many rows to judge, these.
    judged = msgspec.structs.replace(few, stepping=0, judging=700)
    assert of("single", 1, judged).peak == always + 1200 + 700
    # A way back that ends with most gradients there.
    late = msgspec.structs.replace(few, with_gradients=3000)
    assert of("single", 1, late).peak == always + 3000


def test_buckets_are_there_throughout() -> None:
    assert of("ddp", 2).peak - of("single", 1).peak == 1200


def test_zero1_divides_the_state_alone() -> None:
    ddp, zero1 = of("ddp", 4), of("zero1", 4)
    assert ddp.peak - zero1.peak == ddp.optimizer - zero1.optimizer == 1800
    assert (zero1.parameters, zero1.gradients) == (1200, 1200)


def test_sharded_seats_hold_shares_and_the_blocks_at_work() -> None:
    found = of("fsdp", 4)
    assert (found.parameters, found.gradients, found.optimizer) == (300 + 600, 300 + 300, 600)
    assert found.snapshot == 310
    assert of("hsdp", 4, replicas=2) == of("fsdp", 2)
    assert of("hsdp", 4) == of("fsdp", 2)


def test_parts_that_are_sharded_over_replicas_are_cut_twice() -> None:
    # The trace has one part of each layer already.
    assert of("tensor", 4, replicas=2, shard=True) == of("fsdp", 2)
    assert of("tensor", 4, replicas=2).parameters == 1200


def test_gathered_blocks_are_never_more_than_the_network() -> None:
    whole = msgspec.structs.replace(TRACE, largest=1200)
    assert estimate(whole, Division(2, 2, 2, gathers=True)).parameters == 1200


def test_copies_of_a_network_keep_no_state() -> None:
    first, other = division(StrategyUse("data-parallel", 2, "cuda")) or ()
    one, two = estimate(TRACE, first), estimate(TRACE, other)
    assert (two.optimizer, two.snapshot, two.stepping) == (0, 0, 0)
    assert one.activations == two.activations == 5100
    assert key_of(StrategyUse("data-parallel", 4, "cuda"), TrainSpec(batch=64), ExecutionSpec()).rows == 16


def test_gradients_of_earlier_microbatches_wait() -> None:
    alone, several = (estimate(TRACE, Division(), several=several) for several in (False, True))
    assert several.peak - alone.peak == 1200


def test_what_is_not_known_is_not_estimated() -> None:
    assert division(StrategyUse("another", 2, "cuda")) is None


@given(st.integers(0, 9000), st.integers(2, 16), st.sampled_from(["single", "ddp", "zero1", "fsdp", "hsdp"]))
def test_more_activations_never_take_less_and_more_seats_never_more(passing: int, ways: int, name: str) -> None:
    some, more = (
        msgspec.structs.replace(TRACE, passing=size, with_gradients=size) for size in (passing, passing + 9)
    )
    assert of(name, ways, some).peak <= of(name, ways, more).peak
    if name in ("zero1", "fsdp"):
        assert of(name, 2 * ways, some).peak <= of(name, ways, some).peak


@pytest.mark.parametrize(
    ("use", "microbatch", "rows"),
    [
        (StrategyUse("single", 1, "cpu"), None, 66),
        (StrategyUse("ddp", 4, "cpu"), None, 17),
        (StrategyUse("ddp", 4, "cpu"), 5, 5),
        (StrategyUse("tensor", 4, "cpu"), None, 66),
        (StrategyUse("tensor", 4, "cpu", options=StrategyOptions(replicas=2)), None, 33),
        (StrategyUse("ddp", 66, "cpu"), None, 2),
    ],
)
def test_as_many_rows_pass_at_once_as_the_largest_seat_has(use: StrategyUse, microbatch: int, rows: int) -> None:
    assert key_of(use, TrainSpec(batch=66), ExecutionSpec(microbatch=microbatch)).rows == rows


def facts_for(trial: Trial, **more: Any) -> Facts:
    use = DataUse(name="d", origin="real", where="w", digest="x", rows={"train": 70, "test": 30}, classes=10)
    key = key_of(trial.strategy, trial.train, trial.execution)
    trace = msgspec.structs.replace(TRACE, key=key, **more)
    return Facts(WorkloadSpec("mlp"), "d", use, 1, 1, (), row_bytes=3, traces=(trace,), process_bytes=5000)


def test_seats_that_share_a_device_are_added_up_with_their_programs() -> None:
    trial = trial_of(StrategyUse("ddp", 2, "cpu"))
    found = estimates(trial, facts_for(trial))
    one = of("ddp", 2)
    assert peaks(found) == {"cpu": 2 * (one.peak + 300 + 5000)}
    assert (found["cpu"].data, found["cpu"].process) == (600, 10_000)


def test_each_device_by_itself() -> None:
    trial = trial_of(StrategyUse("ddp", 2, "cuda"))
    found = estimates(trial, facts_for(trial))
    assert set(found) == {"cuda:0", "cuda:1"}
    assert found["cuda:0"] == found["cuda:1"] == of("ddp", 2)


def test_without_a_trace_there_is_no_estimate() -> None:
    trial = trial_of(StrategyUse("ddp", 2, "cpu"))
    assert estimates(trial, facts_for(trial, unknown="for a reason")) == {}
    assert estimates(trial, msgspec.structs.replace(facts_for(trial), traces=())) == {}
    assert estimates(msgspec.structs.replace(trial, peer="plain"), facts_for(trial)) == {}
