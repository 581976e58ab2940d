"""Where a speed-up came from, as a person reads it."""

from __future__ import annotations

import msgspec
import pytest

from escala.analyse.annex import Annex
from escala.analyse.attribute import Attribution, Bar, Factor, Interaction
from escala.analyse.row import Interval
from escala.report import WRITERS
from escala.report.attribution_sections import TOGETHER, attribution_sections


def interval(middle: float, spread: float = 0.1) -> Interval:
    return Interval(middle, middle - spread, middle + spread, (middle,) * 5)


FOUND = Attribution(
    point={"train.batch": 64},
    baseline="1 device",
    target="4 devices, bf16",
    names=("devices", "precision"),
    orders=2,
    possible=2,
    total=interval(6.0),
    factors=(
        Factor("devices", ("strategy.ways 1 -> 4",), interval(3.0), interval(0.61, 0.02)),
        Factor("precision", ("execution.precision fp32 -> bf16",), interval(2.0), interval(0.39, 0.02)),
    ),
    interactions=(Interaction("devices", "precision", interval(0.9)),),
    waterfall=(Bar("devices", 1.0, 3.0), Bar("precision", 3.0, 6.0)),
    missing=("with batch: out of memory: 40 GiB",),
)
NONE = Attribution({}, "a", "b", ("devices",), 0, 1, reason="the target has no times here")


def test_the_table_has_a_line_a_factor_and_one_for_the_whole() -> None:
    table, beside = attribution_sections([FOUND])
    cells = {column.title: column.cells for column in table.columns}
    assert cells["factor"] == ("devices", "precision", TOGETHER)
    assert cells["speed-up"] == ("3.00 [2.90, 3.10]", "2.00 [1.90, 2.10]", "6.00 [5.90, 6.10]")
    assert cells["share, %"] == ("61.0 [59.0, 63.0]", "39.0 [37.0, 41.0]", "")
    assert cells["waterfall"] == ("1.00 -> 3.00", "3.00 -> 6.00", "")
    assert table.heading.endswith("1 device -> 4 devices, bf16, train.batch = 64")
    assert table.remarks == (("without times", "with batch: out of memory: 40 GiB"),)
    assert beside.columns[1].cells == ("0.90 [0.80, 1.00]",)


def test_fewer_orders_and_no_sure_speed_up_are_said() -> None:
    part = msgspec.structs.replace(
        FOUND,
        orders=1,
        interactions=(),
        factors=tuple(msgspec.structs.replace(factor, share=None) for factor in FOUND.factors),
    )
    (table,) = attribution_sections([part])
    assert "Only 1 of 2 orders" in table.lines[0]
    assert "no sure speed-up" in table.lines[1]


def test_why_nothing_was_taken_apart_is_said() -> None:
    (told,) = attribution_sections([NONE])
    assert (told.columns, told.lines) == ((), ("Not taken apart: the target has no times here.",))


@pytest.mark.parametrize("form", ["terminal", "markdown", "json"])
def test_it_stands_in_every_report_for_people_and_programs(form: str) -> None:
    from shown import CAMPAIGNS, shown

    text = WRITERS[form](*shown(CAMPAIGNS["clean"]()), Annex(attributions=(FOUND, NONE)))
    assert "precision" in text
    assert "the target has no times here" in text
