"""What is divided by what, and what of it is there at the peak."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from trials import HOST, trial_of

from escala.execution.feed import Rows, evaluation_batches
from escala.plan.estimate import Estimate, product_workspace
from escala.plan.memory import Division, Gathering, division, estimate, estimates, judged_at_once, peaks, why_unknown
from escala.plan.preflight import Facts
from escala.plan.traces import PartTrace, Trace, TraceKey, key_of
from escala.terms.experiment import ExecutionSpec, StrategyOptions, TrainSpec, WorkloadSpec
from escala.terms.host import Device
from escala.terms.record import DataUse
from escala.terms.trial import StrategyUse, Trial

TRACE = Trace(
    key=TraceKey(100),
    parameters=1200,
    buffers=10,
    gradients=1200,
    optimizer=2400,
    stepping=1200,
    blocks=(300, 200, 250, 100),
    casts=500,
    passing=5100,
    with_gradients=4900,
    judging=40,
    judged=30,
)
PLAIN = msgspec.structs.replace(HOST, devices=())
"""Without devices of which anything is known, so without what libraries keep on them."""
MIB = 2**20


def of(name: str, ways: int, trace: Trace = TRACE, **options: Any) -> Estimate:
    found = division(StrategyUse(name, ways, "cuda", options=StrategyOptions(**options)))
    assert found is not None
    return estimate(trace, found)


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
    whole = msgspec.structs.replace(TRACE, blocks=(1200,))
    assert estimate(whole, Division(2, 2, 2, gathers=Gathering())).parameters == 1200


def test_groups_of_blocks_are_gathered_together_and_may_stay() -> None:
    assert of("fsdp", 10).parameters == 120 + 2 * 300
    assert of("fsdp", 10, group=2).parameters == 120 + 2 * 500
    assert of("fsdp", 10, group=2).gradients == 120 + 500
    assert of("fsdp", 10, reshard=False).parameters == 120 + 1200
    # In 16 bits they take half, and autocast copies none of them.
    narrow = of("fsdp", 10, reshard=False, narrow=True)
    assert narrow.parameters == 120 + 600
    assert narrow.activations == 5100 - 500


def test_shares_that_lie_in_the_hosts_memory_take_none_of_the_device() -> None:
    there, aside = of("fsdp", 4), of("fsdp", 4, offload="cpu")
    assert (aside.parameters, aside.gradients, aside.optimizer, aside.stepping) == (600, 300, 0, 0)
    assert aside.snapshot == TRACE.buffers
    # Weights, state and their snapshot; gradients are no part of the peak, which is the pass.
    assert there.peak - aside.peak == 300 + 600 + 300
    assert of("fsdp", 4, offload="cpu", reshard=False).parameters == 1200
    assert of("tensor", 4, replicas=2, shard=True, offload="cpu") == of("fsdp", 2, offload="cpu")


@pytest.mark.parametrize("offload", [None, "cpu"])
def test_gradients_of_several_passes_are_whole_until_they_are_divided(offload: str | None) -> None:
    use = StrategyUse("fsdp", 4, "cuda", options=StrategyOptions(offload=offload))
    found = division(use)
    assert found is not None
    once, several = estimate(TRACE, found), estimate(TRACE, found, several=True)
    assert several.gradients == 1200
    assert several.peak - once.peak == 1200


def copies(**more: Any) -> dict[str, Estimate]:
    """Of a network on two devices, of which the second one has a copy."""
    trial = trial_of(StrategyUse("data-parallel", 2, "cuda"), **more)
    first = PartTrace(1200, 7, 0, 0, 0, with_gradients=9000, taken=5, judging=8000)
    other = PartTrace(1200, 7, 0, 0, 0, with_gradients=4000, taken=5, judging=6000)
    return estimates(trial, facts_for(trial, fed=11, along=(first, other)), PLAIN)


def test_the_first_of_several_copies_has_all_outputs_and_the_state_and_the_others_a_pass_alone() -> None:
    found = copies()
    # Weights, buffers, state, the snapshot of weights and buffers; rows of both, and the pass with all outputs.
    assert found["cuda:0"].peak == 1210 + 2400 + 1210 + 2 * 11 + 9000
    assert found["cuda:1"].peak == 1210 + 7 + 4000
    assert (found["cuda:1"].optimizer, found["cuda:1"].snapshot, found["cuda:1"].stepping) == (0, 0, 0)
    key = key_of(StrategyUse("data-parallel", 4, "cuda"), TrainSpec(batch=64), ExecutionSpec())
    assert (key.rows, key.copies) == (16, 4)
    assert key_of(StrategyUse("data-parallel", 4, "cuda"), TrainSpec(batch=64), ExecutionSpec(microbatch=8)).rows == 2


def test_copies_judge_rows_where_the_budget_is_epochs() -> None:
    found = copies(train=TrainSpec(epochs=1, batch=64))
    assert found["cuda:0"].peak == 1210 + 2400 + 1210 + max(22 + 9000, 1200 + 2 * 5 + 8000)
    assert found["cuda:1"].peak == 1210 + 5 + 6000


def test_gradients_of_earlier_microbatches_wait_on_the_first_of_several_copies() -> None:
    at_once, several = copies(), copies(execution=ExecutionSpec(microbatch=32))
    assert several["cuda:0"].peak - at_once["cuda:0"].peak == 1200
    assert several["cuda:1"] == at_once["cuda:1"]
    assert division(StrategyUse("data-parallel", 1, "cuda")) == division(StrategyUse("single", 1, "cuda"))


def test_gradients_of_copies_are_added_up_beside_the_first_ones_own() -> None:
    trial = trial_of(StrategyUse("data-parallel", 2, "cuda"))
    nothing = PartTrace(0, 0, 0, 0, 0)
    found = estimates(trial, facts_for(trial, along=(nothing, nothing)), PLAIN)
    # Own gradients, their sum, and what is being added, here all at once.
    assert found["cuda:0"].peak == 1210 + 2400 + 1210 + 3 * 1200
    assert found["cuda:1"].peak == 1210 + 2 * 1200
    large = facts_for(trial, along=(nothing, nothing), gradients=100 * MIB)
    assert estimates(trial, large, PLAIN)["cuda:1"].peak == 1210 + 110 * MIB


def test_a_budget_of_steps_judges_nothing() -> None:
    use = StrategyUse("single", 1, "cuda")
    steps, epochs = (trial_of(use, train=TrainSpec(batch=64, **how)) for how in ({"steps": 1}, {"epochs": 1}))
    few: dict[str, Any] = {"passing": 0, "with_gradients": 0, "stepping": 0, "judging": 700}
    always = 1210 + 2400 + 1210 + 1200
    assert estimates(steps, facts_for(steps, **few), PLAIN)["cuda:0"].peak == always
    assert estimates(epochs, facts_for(epochs, **few), PLAIN)["cuda:0"].peak == always + 700
    profile = msgspec.structs.replace(epochs, role="profile")
    assert estimates(profile, facts_for(epochs, **few), PLAIN)["cuda:0"].peak == always


EPOCHS = TrainSpec(epochs=1, batch=64)


@pytest.mark.parametrize(
    ("rows", "most"),
    [
        # Nine of ten chunks of 30 rows: each seat has a whole one.
        ({"train": 9000, "test": 280}, [30, 30]),
        # One chunk, which the last seat gets, and one that is not full.
        ({"train": 9000, "test": 30}, [0, 30]),
        ({"train": 9000, "test": 40}, [30, 10]),
        # The larger of two splits counts; rows for training are not judged.
        ({"train": 9000, "test": 12, "validation": 40}, [30, 12]),
        ({"train": 9000}, [0, 0]),
    ],
)
def test_each_seat_judges_its_chunks_alone(rows: dict[str, int], most: list[int]) -> None:
    trial = trial_of(StrategyUse("ddp", 2, "cuda"), train=EPOCHS)
    assert [judged_at_once(trial, seat, 30, rows) for seat in trial.seats] == most


@given(st.integers(1, 500), st.integers(1, 4), st.integers(1, 60))
def test_judged_rows_are_those_of_the_feed(many: int, ways: int, chunk: int) -> None:
    trial = trial_of(StrategyUse("ddp", ways, "cuda"), train=EPOCHS)
    judged = min(chunk, many)
    splits = Rows(
        raw := torch.zeros(many, 1),
        torch.zeros(many, dtype=torch.int64),
        raw.device,
        lambda inputs, targets: (inputs, targets),
        len,
        lambda outputs, _: outputs,
        judged,
    )
    for seat in trial.seats:
        most = max((len(inputs) for inputs, *_ in evaluation_batches(splits, seat.share, ways)), default=0)
        assert judged_at_once(trial, seat, judged, {"test": many}) == most


def test_what_a_shorter_pass_takes_is_traced_and_not_divided() -> None:
    trial = trial_of(StrategyUse("ddp", 2, "cuda"), train=EPOCHS)
    few: dict[str, Any] = {"passing": 0, "with_gradients": 0, "stepping": 0, "judging": 900}
    always = 1210 + 2400 + 1210 + 1200
    for ends, other in (((), 300), (((10, 70),), 70)):
        facts = facts_for(trial, **few, ends=ends)
        use = msgspec.structs.replace(facts.use, rows={"train": 9000, "test": 40})
        facts = msgspec.structs.replace(facts, use=use)
        found = estimates(trial, facts, PLAIN)
        assert [found[device].peak - always for device in ("cuda:0", "cuda:1")] == [900, other]


def test_a_seat_that_judges_nothing_needs_no_room_for_it() -> None:
    trial = trial_of(StrategyUse("ddp", 2, "cuda"), train=EPOCHS)
    few: dict[str, Any] = {"passing": 0, "with_gradients": 0, "stepping": 0, "judging": 700}
    found = estimates(trial, facts_for(trial, **few), PLAIN)
    assert found["cuda:1"].peak - found["cuda:0"].peak == 700


def test_libraries_keep_room_for_products_on_each_card_by_its_capability() -> None:
    cards = (Device("cuda", 0, "g", 1, capability="9.0"), Device("cuda", 1, "g", 1, capability="8.6"))
    host = msgspec.structs.replace(HOST, devices=cards)
    # One for the way forward and one for the way back.
    rooms = [product_workspace(device, host) for device in ("cuda:0", "cuda:1", "cpu", "mps:0")]
    assert rooms == [64 * MIB, 2 * (8 * MIB + 128 * 1024), 0, 0]
    trial = trial_of(StrategyUse("ddp", 2, "cuda"))
    found = estimates(trial, facts_for(trial), host)
    assert [found[card].workspace for card in ("cuda:0", "cuda:1")] == rooms[:2]
    assert found["cuda:0"].peak == of("ddp", 2).peak + 64 * MIB
    assert (
        estimates(on_host := trial_of(StrategyUse("ddp", 2, "cpu")), facts_for(on_host), host)["cpu"].workspace == 0
    )


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
    found = estimates(trial, facts_for(trial), PLAIN)
    one = of("ddp", 2)
    assert peaks(found) == {"cpu": 2 * (one.peak + 300 + 5000)}
    assert (found["cpu"].data, found["cpu"].process) == (600, 10_000)


def test_each_device_by_itself() -> None:
    trial = trial_of(StrategyUse("ddp", 2, "cuda"))
    found = estimates(trial, facts_for(trial), PLAIN)
    assert set(found) == {"cuda:0", "cuda:1"}
    assert found["cuda:0"] == found["cuda:1"] == of("ddp", 2)


def test_gradients_that_lie_in_no_bucket_take_room_as_they_come() -> None:
    late: dict[str, Any] = {"passing": 900, "with_gradients": 1500, "stepping": 0, "judging": 0}
    found = list[int]()
    for execution in (ExecutionSpec(), ExecutionSpec(overlap="optimizer"), ExecutionSpec(transport="shm")):
        trial = trial_of(StrategyUse("ddp", 2, "cuda"), execution=execution)
        found.append(estimates(trial, facts_for(trial, **late), PLAIN)["cuda:0"].peak)
    # Buckets are there all the time, and so is memory for sums and for half of what the other seat has.
    assert [peak - (1210 + 2400 + 1210) for peak in found] == [1200 + 900, 1500, 1500 + 1200 + 600]


def test_why_nothing_can_be_told_is_told() -> None:
    trial = trial_of(StrategyUse("ddp", 2, "cuda"))
    assert why_unknown(trial, facts_for(trial)) is None
    assert why_unknown(trial, facts_for(trial, unknown="it looks at numbers")) == "it looks at numbers"
    peer = msgspec.structs.replace(trial, peer="jax")
    assert why_unknown(peer, facts_for(trial)) == "what jax holds is not traced"
    largest = msgspec.structs.replace(trial, execution=ExecutionSpec(microbatch="max"))
    assert "when the trial runs" in str(why_unknown(largest, facts_for(largest)))
    bare = msgspec.structs.replace(facts_for(trial), traces=())
    assert why_unknown(trial, bare) == "ddp is not in the table of what is divided by what"
    assert estimates(trial, bare, PLAIN) == {}


def test_without_a_trace_there_is_no_estimate() -> None:
    trial = trial_of(StrategyUse("ddp", 2, "cpu"))
    assert estimates(trial, facts_for(trial, unknown="for a reason"), PLAIN) == {}
    assert estimates(trial, msgspec.structs.replace(facts_for(trial), traces=()), PLAIN) == {}
    assert estimates(msgspec.structs.replace(trial, peer="plain"), facts_for(trial), PLAIN) == {}
