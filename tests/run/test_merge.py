from __future__ import annotations

import math

import msgspec
import pytest

from escala.plan.preflight import Facts, MetricName
from escala.plan.traces import Trace, key_of
from escala.run.assignment import Divergence, EpochTally, Failure, SeatResult
from escala.run.merge import done_record, failed_record
from escala.terms.experiment import ExecutionSpec, TrainSpec, WorkloadSpec
from escala.terms.host import Host
from escala.terms.record import DataUse, Reading, Score
from escala.terms.trial import Seat, StrategyUse, Trial

HOST = Host(cpu="c", cores=2, memory_bytes=1, system="s")
USE = DataUse(
    name="d", origin="real", where="w", digest="x", rows={"train": 10, "validation": 0, "test": 4}, classes=10
)
FACTS = Facts(
    spec=WorkloadSpec("mlp"),
    data="d",
    use=USE,
    parameters=7,
    flops_per_sample=42,
    metrics=(MetricName("accuracy"), MetricName("perplexity", "lower")),
    prepare_s=1.5,
)
TRIAL = Trial(
    id="t",
    label="ddp x2",
    workload="mlp",
    options={},
    data="d",
    validation=0.0,
    limit=None,
    strategy=StrategyUse("ddp", 2, "cpu"),
    execution=ExecutionSpec(),
    train=TrainSpec(batch=6, epochs=1),
    batch=6,
    seats=tuple(Seat(rank, 0, ("cpu",), (3 * rank, 3 * rank + 3), 1) for rank in range(2)),
    seed=0,
    repeat=0,
)


def seat(losses: tuple[float | None, ...], train_s: float, peak: float, **more: object) -> SeatResult:
    fields: dict[str, object] = {
        "setup_s": 1.0,
        "first_step_s": 0.5,
        "settled": True,
        "steps_per_block": 1,
        "block_seconds": (0.3,),
        "losses": losses,
        "epochs": (EpochTally(train_s, "order", 9.0, 10),),
        "steps": len(losses),
        "samples": 10,
        "train_s": train_s,
        "test_s": 0.1,
        "test_scores": (0.75, 2.5),
        "test_rows": 4,
        "parameters": 7,
        "readings": (Reading("peak memory", "cpu", peak, "B", "counter"),),
    }
    return SeatResult(**{**fields, **more})  # type: ignore[arg-type]


def test_parts_add_up_and_the_slowest_seat_decides() -> None:
    record = done_record(TRIAL, HOST, FACTS, [seat((1.0, 0.5), 2.0, 100), seat((0.25, 0.125), 4.0, 50)], ())
    assert record.losses == (1.25, 0.625)
    assert record.phases is not None
    assert record.phases.train_s == 4.0
    assert record.phases.validation_s is None
    assert record.phases.total_s == pytest.approx(4.1)
    assert record.epochs[0].loss == pytest.approx(1.8)  # (9 + 9) / 10
    assert record.samples_per_second == pytest.approx(2.5)
    # Processes share the host's memory, so their peaks on it are added up.
    assert record.memory_bytes == {"cpu": 150}
    assert record.score is not None
    assert (record.score.value, record.score.samples) == (0.75, 4)
    assert record.other_scores == (Score("perplexity", 2.5, 4, "lower"),)
    assert record.prepare_s == 1.5
    assert record.flops_per_sample == 42


def test_a_device_of_two_readings_keeps_the_higher_peak() -> None:
    readings = tuple(Reading("peak memory", "cuda:0", value, "B", "counter") for value in (5.0, 9.0))
    record = done_record(TRIAL, HOST, FACTS, [seat((1.0,), 1.0, 0, readings=readings)], ())
    assert record.memory_bytes == {"cuda:0": 9}


def test_a_divergence_is_no_result_but_keeps_what_was_measured() -> None:
    bad = Divergence(1, 1)
    results = [seat((1.0, 0.5), 1.0, 1, diverged=bad), seat((1.0, None), 1.0, 1, diverged=bad)]
    record = done_record(TRIAL, HOST, FACTS, results, ())
    assert (record.outcome, record.reason) == ("diverged", "the loss was not finite at step 1 on rank 1")
    assert record.losses[0] == 2.0
    assert math.isnan(record.losses[1])
    assert record.score is None


def test_a_failure_has_its_reason_and_no_times() -> None:
    record = failed_record(TRIAL, HOST, FACTS, Failure("failed", "rank 1: killed"), ("busy host",))
    assert (record.outcome, record.reason, record.doubts) == ("failed", "rank 1: killed", ("busy host",))
    assert record.phases is None
    assert record.score is None


def test_a_warm_up_that_did_not_settle_is_a_doubt() -> None:
    record = done_record(TRIAL, HOST, FACTS, [seat((1.0,), 1.0, 1, settled=False)], ("busy host",))
    assert record.doubts == ("busy host", "not warm")


def test_float32_losses_keep_nine_digits_and_float64_all() -> None:
    import msgspec

    third = 1 / 3
    single = done_record(TRIAL, HOST, FACTS, [seat((third,), 1.0, 1)], ())
    double = msgspec.structs.replace(TRIAL, execution=ExecutionSpec("fp64"))
    assert single.losses == (0.333333333,)
    assert done_record(double, HOST, FACTS, [seat((third,), 1.0, 1)], ()).losses == (third,)


def epochs_of(*scores: float) -> tuple[EpochTally, ...]:
    return tuple(EpochTally(1.0, f"o{place}", 9.0, 10, 0.25, score) for place, score in enumerate(scores))


@pytest.mark.parametrize(("until", "reached"), [(0.9, True), (0.95, False)])
def test_time_to_score_is_training_and_validation_without_the_test(until: float, reached: bool) -> None:
    trial = msgspec.structs.replace(TRIAL, train=TrainSpec(batch=6, epochs=3, until=until))
    part = seat((1.0, 0.5), 2.0, 100, epochs=epochs_of(0.7, 0.92), validation_s=0.5)
    slower = seat((1.0, 0.5), 3.0, 100, epochs=epochs_of(0.7, 0.92), validation_s=0.75)
    found = done_record(trial, HOST, FACTS, [part, slower], ()).to_score
    assert found is not None
    assert (found.metric, found.better, found.target, found.reached) == ("accuracy", "higher", until, reached)
    assert (found.epochs, found.steps, found.train_s, found.total_s) == (2, 2, 3.0, 3.75)
    assert (found.energy_j, found.energy_reason) == (None, "not measured: no power meter was asked for")


def test_without_a_target_there_is_no_time_to_score() -> None:
    assert done_record(TRIAL, HOST, FACTS, [seat((1.0,), 2.0, 100)], ()).to_score is None


def test_a_diverged_training_did_not_reach_its_target() -> None:
    trial = msgspec.structs.replace(TRIAL, train=TrainSpec(batch=6, epochs=3, until=0.9))
    epochs = (*epochs_of(0.7), EpochTally(1.0, "o1", None, 10))
    part = seat((1.0, None), 2.0, 1, epochs=epochs, diverged=Divergence(1, 0))
    record = done_record(trial, HOST, FACTS, [part], ())
    assert record.outcome == "diverged"
    assert record.to_score is not None
    assert not record.to_score.reached


def test_the_expected_peak_is_kept_beside_the_measured_one_and_where_memory_ran_out() -> None:
    key = key_of(TRIAL.strategy, TRIAL.train, TRIAL.execution)
    facts = msgspec.structs.replace(FACTS, traces=(Trace(key, parameters=1000, passing=50),), process_bytes=7)
    done = done_record(TRIAL, HOST, facts, [seat((1.0,), 1.0, 5.0), seat((1.0,), 1.0, 5.0)], ())
    assert done.memory_estimate_bytes == {"cpu": 2 * (1000 + 1000 + 50 + 7)}
    failed = failed_record(TRIAL, HOST, facts, Failure("out of memory", "no room"), ())
    assert failed.memory_estimate_bytes == done.memory_estimate_bytes
    assert done_record(TRIAL, HOST, FACTS, [seat((1.0,), 1.0, 5.0)] * 2, ()).memory_estimate_bytes == {}
