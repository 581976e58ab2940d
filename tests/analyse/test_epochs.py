"""Rows epoch by epoch."""

from __future__ import annotations

import recorded as made
from msgspec.structs import replace

from escala.analyse.epochs import by_epoch
from escala.analyse.summary import summarise
from escala.terms.record import Epoch, Record


def curves(label: str = "single", **more: object) -> list[Record]:
    """Three runs of two epochs: losses fall, scores rise, each run a little apart."""
    return [
        replace(
            record,
            epochs=tuple(
                Epoch(1.0 + run, 2.0 / number + run / 10, "o", 0.1, number / 4 + run / 100) for number in (1, 2)
            ),
        )
        for run, record in enumerate(made.repeats(label, (2.0, 2.0, 2.0), **more))  # type: ignore[arg-type]
    ]


def test_each_epoch_is_the_median_over_runs() -> None:
    records = curves()
    first, second = by_epoch(records, summarise(records))
    assert (first.label, first.number, first.runs, first.score_name) == ("single", 1, 3, "accuracy")
    assert first.train_s is not None
    assert (first.train_s.median, first.train_s.low, first.train_s.high) == (2.0, 1.0, 3.0)
    assert [epoch.loss.median for epoch in (first, second) if epoch.loss] == [2.1, 1.1]
    assert [epoch.score.median for epoch in (first, second) if epoch.score] == [0.26, 0.51]


def test_rows_stand_as_their_summaries_do() -> None:
    records = [*curves("ddp x2", ways=2), *curves()]
    rows = by_epoch(records, summarise(records, "single"))
    assert [(row.label, row.number) for row in rows] == [("single", 1), ("single", 2), ("ddp x2", 1), ("ddp x2", 2)]


def test_a_disturbed_run_gives_losses_but_no_times() -> None:
    records = curves()
    records[0] = replace(records[0], doubts=("disturbed",))
    first = by_epoch(records, summarise(records))[0]
    assert first.train_s is not None
    assert first.loss is not None
    assert (first.train_s.values, len(first.loss.values)) == ((2.0, 3.0), 3)


def test_without_validation_and_without_numbers_there_is_no_figure() -> None:
    records = [replace(curves()[0], epochs=(Epoch(1.0, float("nan"), "o"),))]
    (row,) = by_epoch(records, summarise(records))
    assert (row.loss, row.score, row.validation_s) == (None, None, None)


def test_a_trial_that_was_not_done_has_no_epochs() -> None:
    records = made.troubled_campaign()
    assert {row.label for row in by_epoch(records, summarise(records, "single"))} == {"single", "ddp x2"}
