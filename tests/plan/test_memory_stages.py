"""Memory of a network that is cut: whose weights, and how many rows are on their way."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from trials import HOST, trial_of

from escala.plan.estimate import Estimate
from escala.plan.memory import estimates
from escala.plan.preflight import Facts
from escala.plan.traces import PartTrace, Trace, key_of
from escala.terms.experiment import ExecutionSpec, StrategyOptions, TrainSpec, WorkloadSpec
from escala.terms.host import Device, Host
from escala.terms.record import DataUse
from escala.terms.trial import StrategyUse

# Four parts of equal cost; the last one's pass has more on the way than it saves.
ALONG = tuple(
    PartTrace(300, 8, 20, most, 100, with_gradients=most + 300, taken=4, judging=6) for most in (30, 30, 30, 90)
)
PLAINLY = ExecutionSpec()
STEPS = TrainSpec(steps=1, batch=64)
PLAIN = msgspec.structs.replace(HOST, devices=())
STAGE = 600 + 1200 + 600 + 600
"""Weights, state, the snapshot and gradients of two parts."""


def expected(name: str, ways: int, *more: Any, **settings: Any) -> list[int]:
    """Peak by device in the order of seats."""
    return [one.peak for one in estimated(name, ways, *more, **settings)]


def estimated(
    name: str,
    ways: int,
    along: tuple[PartTrace, ...] = ALONG,
    train: TrainSpec = STEPS,
    fed: int = 0,
    execution: ExecutionSpec = PLAINLY,
    host: Host = PLAIN,
    **options: Any,
) -> list[Estimate]:
    """All of it by device in the order of seats."""
    use = StrategyUse(name, ways, "cuda", options=StrategyOptions(**options))
    trial = trial_of(use, train=train, execution=execution)
    trace = Trace(
        key_of(use, train, execution),
        parameters=1200,
        gradients=1200,
        optimizer=2400,
        judged=30,
        fed=fed,
        along=along,
    )
    used = DataUse(name="d", origin="real", where="w", digest="x", rows={"train": 70, "test": 30}, classes=10)
    found = estimates(trial, Facts(WorkloadSpec("mlp"), "d", used, 1, 1, (), traces=(trace,)), host)
    return [found[f"cuda:{number}"] for number in range(len(found))]


def test_stages_hold_the_rows_that_are_forward_and_not_yet_back() -> None:
    # A stage saves 8 + 20 + 20 of each microbatch; the first one's way back has 10 more, the last one's 70 more.
    assert expected("pipeline", 2, schedule="gpipe", microbatches=4) == [STAGE + 4 * 48 + 10, STAGE + 4 * 48 + 70]
    # 1F1B: as many as stages follow, and one.
    assert expected("pipeline", 2, microbatches=4) == [STAGE + 2 * 48 + 10, STAGE + 48 + 70]


def test_in_one_pass_gradients_come_as_it_goes_back() -> None:
    # A stage's first part is the last one back: 8 were given, 30 are on the way, with all of its gradients.
    assert expected("layers", 2) == [STAGE + 8 + 30, STAGE + 8 + 30]
    early = (*ALONG[:3], msgspec.structs.replace(ALONG[3], with_gradients=900))
    # The last part's own peak, beside what the one before it has saved, where no other gradients are yet.
    assert expected("layers", 2, early)[1] == STAGE - 600 + 8 + 20 + 900
    assert expected("pipeline", 2, microbatches=1) == expected("layers", 2)
    # With several passes those of the earlier ones are there from the beginning.
    assert expected("layers", 2, execution=ExecutionSpec(microbatch=16)) == [STAGE + 48 + 10, STAGE + 48 + 70]


def test_the_rows_lie_on_the_first_device_of_layers_and_on_all_seats_of_a_pipeline() -> None:
    bare, fed = expected("layers", 2), expected("layers", 2, fed=5)
    assert [one - other for one, other in zip(fed, bare, strict=True)] == [5, 0]
    bare, fed = (expected("pipeline", 2, fed=rows, microbatches=4) for rows in (0, 5))
    assert [one - other for one, other in zip(fed, bare, strict=True)] == [20, 20]


def test_each_device_judges_with_its_own_stage() -> None:
    epochs = TrainSpec(epochs=1, batch=64)
    heavy = tuple(
        msgspec.structs.replace(ALONG[number], judging=judging) for number, judging in enumerate((50, 700, 90, 60))
    )
    # What the stage was given, what the part was given, and what it holds itself.
    assert expected("layers", 2, heavy, epochs) == [STAGE + 4 + 4 + 700, STAGE + 4 + 90]
    # Every seat of a pipeline is given the rows that are judged, too.
    assert expected("pipeline", 2, heavy, epochs, microbatches=1) == [STAGE + 4 + 4 + 700, STAGE + 4 + 4 + 90]
    assert expected("layers", 2, heavy) == expected("layers", 2)


def test_a_tied_weight_is_held_once_in_one_process_and_by_both_seats_of_a_pipeline() -> None:
    tied = (*ALONG[:3], msgspec.structs.replace(ALONG[3], tied=((0, 300),)))
    alone, seats = (
        expected("layers", 2, tied, split=(2, 2)),
        expected("pipeline", 2, tied, split=(2, 2), microbatches=4),
    )
    assert seats == expected("pipeline", 2, split=(2, 2), microbatches=4)
    # The first device gets a gradient back; the other one has a copy and its gradient for the pass, and no state.
    assert alone[0] == STAGE + 8 + 30 + 300
    assert alone[1] == 300 + 600 + 300 + (8 + 330 + 300) + 2 * 300
    # Where both places lie in one stage there is one weight.
    together = (*ALONG[:2], msgspec.structs.replace(ALONG[2]), msgspec.structs.replace(ALONG[3], tied=((2, 300),)))
    assert expected("pipeline", 2, together, split=(2, 2), microbatches=4)[1] < seats[1] - 300


def test_where_nobody_says_where_to_cut_the_first_device_weighs_every_part() -> None:
    long = (*ALONG[:3], msgspec.structs.replace(ALONG[3], alone=9000))
    assert expected("layers", 2, long, fed=5)[0] == expected("pipeline", 2, long, fed=5, microbatches=1)[0] == 9005
    assert expected("layers", 2, long, split=(2, 2)) == expected("layers", 2)


def test_more_microbatches_take_no_more_room_in_1f1b() -> None:
    assert expected("pipeline", 2, microbatches=4) == expected("pipeline", 2, microbatches=16)
    assert expected("pipeline", 2, schedule="gpipe", microbatches=4) < expected(
        "pipeline", 2, schedule="gpipe", microbatches=16
    )


def test_a_cut_that_is_given_decides_who_holds_what() -> None:
    first, last = expected("layers", 2, split=(1, 3))
    assert last - first == 2 * (300 + 600 + 300 + 300)
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


def test_libraries_keep_room_for_products_where_matrices_are_multiplied() -> None:
    along = tuple(msgspec.structs.replace(part, multiplies=number > 2) for number, part in enumerate(ALONG))
    cards = tuple(Device("cuda", number, "g", 1, capability="9.0") for number in range(2))
    found = estimated("layers", 2, along, host=msgspec.structs.replace(HOST, devices=cards))
    assert [one.workspace for one in found] == [0, 64 * 2**20]
