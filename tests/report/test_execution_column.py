"""How tables show by what execution a row was run."""

from __future__ import annotations

import msgspec
import recorded as made
from shown import shown

from escala.report.table import tables
from escala.terms.experiment import ExecutionSpec
from escala.terms.record import Record


def changed(execution: ExecutionSpec) -> list[Record]:
    records = made.clean_campaign()
    return [
        msgspec.structs.replace(record, trial=msgspec.structs.replace(record.trial, execution=execution))
        if record.trial.label == "ddp x2"
        else record
        for record in records
    ]


def test_rows_that_differ_show_it() -> None:
    (plain,) = tables(*shown(made.clean_campaign()))
    assert "execution" not in [column.title for column in plain.columns]
    (table,) = tables(*shown(changed(ExecutionSpec(compile=True, memory_format="channels_last"))))
    (column,) = [column for column in table.columns if column.title == "execution"]
    assert column.cells == ("", "", "channels_last, compile")


def test_what_all_rows_have_is_said_once() -> None:
    execution = ExecutionSpec(compile=True)
    records = [
        msgspec.structs.replace(record, trial=msgspec.structs.replace(record.trial, execution=execution))
        for record in made.clean_campaign()
    ]
    (table,) = tables(*shown(records))
    assert "compile" in table.facts[0].split(", ")


def test_what_was_chosen_stands_for_what_was_left_open() -> None:
    records = [msgspec.structs.replace(r, execution=ExecutionSpec(compile=True)) for r in made.clean_campaign()]
    (table,) = tables(*shown(records))
    assert "compile" in table.facts[0].split(", ")
