"""Published figures find their rows, keep their units, and are never dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import pytest
import recorded as made
from msgspec.structs import replace

from escala.analyse.published import _READ, Beside, Published, published
from escala.analyse.summary import summarise
from escala.terms.published import UNITS, Figure, PublishedSpec, SourceSpec
from escala.terms.record import Record

SOURCE = SourceSpec("a paper")


def whole(
    records: Sequence[Record], *entries: PublishedSpec, source: SourceSpec = SOURCE, quick: bool = False
) -> Published:
    found = published(entries, source, summarise(records, "single"), quick=quick)
    assert found is not None
    return found


def only(records: Sequence[Record], entry: PublishedSpec, **more: Any) -> Beside:
    (found,) = whole(records, entry, **more).figures
    return found


def test_every_figure_has_a_unit_and_a_way_to_be_read() -> None:
    assert set(UNITS) == set(_READ) == set(get_args(Figure))


def test_without_figures_or_a_source_there_is_nothing() -> None:
    assert published((), SOURCE, (), quick=False) is None
    assert published((PublishedSpec("single", "score", 1.0),), None, (), quick=False) is None


def test_a_speedup_is_against_the_baseline_or_the_row_named() -> None:
    records = made.clean_campaign()
    plain = only(records, PublishedSpec("ddp x2", "speed-up, training", 1.97, "x"))
    assert plain.measured is not None
    assert plain.measured.median == pytest.approx(2.00 / 1.05)
    other = only(records, PublishedSpec("ddp x2", "speed-up, training", 1.97, "x", against="ddp x1"))
    assert other.measured is not None
    assert other.measured.median == pytest.approx(2.10 / 1.05)
    assert other.against == "ddp x1"


@pytest.mark.parametrize(
    ("figure", "unit", "value"),
    [
        ("total s", "s", 2.3),
        ("total s", "min", 2.3 / 60),
        ("total s", "h", 2.3 / 3600),
        ("score", "", 0.871),
        ("score", "%", 87.1),
        ("efficiency", "%", 100.0),
        ("train s/epoch", "s", 1.0),
        ("validation s", "s", 0.1),
        ("test s", "s", 0.2),
        ("samples/s", "", 6000.0),
    ],
)
def test_a_measured_figure_comes_in_the_published_unit(figure: Figure, unit: Any, value: float) -> None:
    found = only(made.repeats("single", made.SLOW), PublishedSpec("single", figure, 1.0, unit))
    assert found.measured is not None
    assert found.measured.median == pytest.approx(value)
    assert found.measured.low <= found.measured.median <= found.measured.high


def test_a_figure_is_shown_at_each_point_it_may_be_of() -> None:
    records = made.swept_campaign()
    assert [one.place for one in whole(records, PublishedSpec("single", "score", 0.8)).figures] == [
        "train.batch = 64",
        "train.batch = 256",
    ]
    assert only(records, PublishedSpec("single", "score", 0.8, point={"train.batch": 64})).place == "train.batch = 64"


def test_a_case_is_part_of_the_point() -> None:
    records = [record for name in ("a", "b") for record in made.repeats("single", made.SLOW, point={"case": name})]
    found = only(records, PublishedSpec("single", "score", 0.8, case="b"))
    assert (found.place, found.measured is None) == ("case = b", False)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (PublishedSpec("ddp x4", "speed-up", 3.0), "unfit: needs 4 CPU cores; this host has 2"),
        (PublishedSpec("wide", "score", 0.8), "out of memory: std::bad_alloc"),
        (PublishedSpec("ddp x8", "score", 0.8), "no run of it was recorded"),
        (PublishedSpec("single", "energy", 1.2e6, "J"), "no power meter was asked for"),
        (PublishedSpec("single", "speed-up", 11.8, against="ddp x4"), "ddp x4, which it is against"),
    ],
)
def test_what_was_not_measured_stays_with_its_reason(entry: PublishedSpec, reason: str) -> None:
    found = only(made.troubled_campaign(), entry)
    assert found.measured is None
    assert str(found.reason).startswith(reason)


def test_a_figure_that_the_runs_lack_says_so() -> None:
    records = [replace(record, score=None) for record in made.repeats("single", made.SLOW)]
    assert only(records, PublishedSpec("single", "score", 0.8)).reason == "the runs have no such figure"
    missing = only(made.repeats("ddp x2", made.FAST, ways=2), PublishedSpec("ddp x2", "speed-up", 1.8))
    assert str(missing.reason).startswith("single, which it is against, or the row itself has no such times")


def test_the_quick_form_says_that_it_left_a_row_out() -> None:
    found = only(made.repeats("single", made.SLOW), PublishedSpec("ddp x2", "score", 0.8), quick=True)
    assert found.reason == "the quick form leaves it out"


def test_what_differs_is_said() -> None:
    source = SourceSpec("a paper", "2 x Tesla K20m", "MNIST", 100)
    records = made.repeats("single", made.SLOW, data=made.GENERATED)
    found = whole(records, PublishedSpec("single", "score", 0.8), source=source, quick=True)
    assert found.differs == (
        "machine then 2 x Tesla K20m, now Xeon Test, 2 cores, torch 2.13.0",
        "data then MNIST, now synthetic (generated)",
        "100 epochs then, 2 now",
        "the quick form, 12,000 training samples a run: it shows that every part works, not what the study finds",
    )


def test_alike_epochs_are_no_difference() -> None:
    source = SourceSpec("a paper", epochs=2)
    records = made.repeats("single", made.SLOW)
    assert whole(records, PublishedSpec("single", "score", 0.8), source=source).differs == ()
