"""Summaries as rows of plain text."""

from __future__ import annotations

import msgspec
import pytest
import recorded as made
from shown import CAMPAIGNS, HOSTILE, shown, without_score

from escala.report.table import Table, legend, tables
from escala.terms.record import Score


def cells(table: Table, title: str) -> tuple[str, ...]:
    (column,) = [column for column in table.columns if column.title.replace("\n", " ") == title]
    return column.cells


def titles(table: Table) -> list[str]:
    return [column.title.replace("\n", " ") for column in table.columns]


def test_the_columns_of_a_clean_campaign() -> None:
    (table,) = tables(*shown(made.clean_campaign()))
    assert {title: cells(table, title)[2] for title in titles(table)} == {
        "strategy": "ddp x2",
        "seats": "2",
        "batch (per seat)": "64 (32)",
        "runs": "5",
        "train s/epoch": "0.525",
        "validation s": "0.100",
        "test s": "0.200",
        "total s": "1.35 [1.34, 1.37]",
        "samples/s": "11,429",
        "speed-up, all phases": "1.70 [1.68, 1.72]",
        "speed-up, training": "1.90 [1.87, 1.92]",
        "efficiency": "85.2 %",
        "accuracy": "0.8710",
        "score lost, points": "+0.00 [-0.10, +0.10]",
        "peak memory": "300 MiB",
    }
    assert cells(table, "strategy") == ("single (baseline)", "ddp x1", "ddp x2")
    assert table.winner == 2


def test_both_batches_steps_and_samples_can_always_be_read() -> None:
    (table,) = tables(*shown(made.clean_campaign()))
    assert "188 steps, 12,000 samples" in table.facts[0]
    wide = made.repeats("wide", made.FAST, batch=128, ways=2)
    (table,) = tables(*shown([*made.repeats("single", made.SLOW), *wide]))
    assert cells(table, "batch (per seat)") == ("64 (64)", "128 (64)")
    assert cells(table, "steps") == ("188", "94")
    assert "12,000 samples" in table.facts[0]
    assert "steps" not in table.facts[0]


def test_threads_that_differ_have_a_column() -> None:
    records = [*made.repeats("single", made.SLOW), *made.repeats("ddp x2", made.FAST, ways=2, threads=2)]
    (table,) = tables(*shown(records))
    assert cells(table, "threads") == ("2", "4")
    assert cells(table, "doubts") == ("", "a")


def test_columns_that_are_empty_everywhere_are_left_out() -> None:
    (table,) = tables(*shown(without_score()))
    assert not {"accuracy", "score", "doubts", "train s", "ways"} & set(titles(table))


def test_a_budget_of_steps_shows_the_whole_time_and_the_rate_with_its_interval() -> None:
    (table,) = tables(*shown(CAMPAIGNS["steps"]()))
    assert "train s/epoch" not in titles(table)
    assert "speed-up, all phases" not in titles(table)
    assert cells(table, "train s") == ("2.00", "1.05")
    assert cells(table, "samples/s")[0] == "9600 [9505, 9697]"


def test_one_process_with_several_devices_shows_its_ways() -> None:
    records = [*made.repeats("single", made.SLOW), *made.repeats("data-parallel x2", made.FAST, ways=2, seats=1)]
    (table,) = tables(*shown(records))
    assert (cells(table, "seats"), cells(table, "ways")) == (("1", "1"), ("1", "2"))


def test_uneven_seats_show_their_shares() -> None:
    records = made.repeats("three", made.SLOW, ways=3, batch=100)
    (table,) = tables(*shown(records, "three"))
    assert cells(table, "batch (per seat)")[0] == "100 (33 + 33 + 34)"
    records = made.repeats("many", made.SLOW, ways=7, batch=100)
    (table,) = tables(*shown(records, "many"))
    assert cells(table, "batch (per seat)")[0] == "100 (14 to 15)"


def test_what_was_not_done_keeps_its_outcome_and_reason() -> None:
    (table,) = tables(*shown(made.troubled_campaign()))
    assert cells(table, "strategy") == ("single (baseline)", "ddp x2")
    assert cells(table, "runs") == ("5", "3 of 4")
    assert table.trouble == (
        ("ddp x2", "failed 1 of 4: rank 1 was killed by signal 9 (SIGKILL)"),
        ("wide", "out of memory: std::bad_alloc"),
        ("hot", "diverged: the loss is not finite at step 12 on rank 0"),
        ("ddp x4", "unfit: needs 4 CPU cores; this host has 2"),
    )


def test_where_memory_ran_out_the_table_shows_the_boundary() -> None:
    ended = made.make("wide", batch=4096, device="cuda", outcome="out of memory", reason="no room")
    ended = msgspec.structs.replace(ended, memory_bytes={"cuda:0": 79 * 2**30, "cpu": 90 * 2**30})
    (table,) = tables(*shown([*made.repeats("single", made.SLOW), ended]))
    assert table.trouble == (("wide", "out of memory at 79.0 GiB: no room"),)


def test_memory_of_the_host_is_told_apart_from_that_of_devices() -> None:
    # Processes that hold more than a card does, as all do that train something small.
    held = {"cuda:0": 2**30, "cuda:1": 3 * 2**30, "cpu": 5 * 2**30}
    there = made.repeats("ddp x2", made.FAST, ways=2, device="cuda", memory=held)
    (table,) = tables(*shown([*made.repeats("single", made.SLOW), *there]))
    assert cells(table, "peak memory") == ("300 MiB", "3.00 GiB")
    assert cells(table, "host memory") == ("", "5.00 GiB")
    assert "host memory" in legend([table])
    (alone,) = tables(*shown(made.repeats("single", made.SLOW)))
    assert "host memory" not in titles(alone)
    assert "host memory" not in legend([alone])


def test_a_block_for_each_sweep_point_and_host() -> None:
    assert [table.heading for table in tables(*shown(made.swept_campaign()))] == [
        "train.batch = 64",
        "train.batch = 256",
    ]
    hosts = tables(*shown(made.two_hosts()))
    assert [table.facts[1] for table in hosts] == [
        "Xeon Test, 2 cores, torch 2.13.0",
        "Other Chip, 2 cores, torch 2.13.0",
    ]
    assert cells(hosts[1], "doubts") == ("a", "a")


def test_other_torch_is_shown_apart() -> None:
    records = [*made.repeats("single", made.SLOW), *made.repeats("single", made.FAST, host=made.OTHER_TORCH)]
    found = tables(*shown(records))
    assert [table.heading for table in found] == [
        "on Xeon Test, 2 cores, torch 2.13.0",
        "on Xeon Test, 2 cores, torch 2.14.0",
    ]
    assert [cells(table, "runs") for table in found] == [("5",), ("5",)]


def test_data_of_one_name_with_other_content_are_told_apart() -> None:
    changed = msgspec.structs.replace(made.DATA, digest="d9")
    records = [*made.repeats("single", made.SLOW), *made.repeats("ddp x2", made.FAST, ways=2, data=changed)]
    assert [table.heading for table in tables(*shown(records))] == ["data fashion-mnist d1", "data fashion-mnist d9"]


def test_nothing_recorded_gives_no_table() -> None:
    assert tables(*shown([])) == ()


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_every_text_is_printable_and_of_bearable_length(name: str) -> None:
    for table in tables(*shown(CAMPAIGNS[name]())):
        texts = [table.heading, *table.facts, *(word for pair in table.trouble for word in pair)]
        texts += [cell for column in table.columns for cell in column.cells]
        assert all(text.isprintable() and len(text) < 400 for text in texts)


def test_rows_and_columns_have_one_length() -> None:
    for records in CAMPAIGNS.values():
        for table in tables(*shown(records())):
            assert len({len(column.cells) for column in table.columns}) <= 1


def test_hostile_rows_stay_rows() -> None:
    (table,) = tables(*shown(CAMPAIGNS["hostile"]()))
    assert len(cells(table, "strategy")) == 1 + len(HOSTILE)
    assert len(table.trouble) == len(HOSTILE)


def test_lower_is_better_stands_in_the_title_and_other_scores_have_columns() -> None:
    records = [
        msgspec.structs.replace(
            record, score=Score("perplexity", 20.0, 10, "lower"), other_scores=(Score("exact match", 0.5, 10),)
        )
        for record in made.repeats("single", made.SLOW)
    ]
    (table,) = tables(*shown(records))
    cells = {column.title: column.cells for column in table.columns}
    assert cells["perplexity\n(lower is better)"] == ("20.00",)
    assert cells["exact match"] == ("0.5000",)


def test_what_became_of_the_data_stands_in_the_first_line() -> None:
    data = msgspec.structs.replace(made.DATA, padding=0.125, skipped=3)
    records = [
        msgspec.structs.replace(record, prepare_s=seconds)
        for record, seconds in zip(
            made.repeats("single", made.SLOW, data=data), (0.1, 12.3, 0.1, 0.1, 0.1), strict=True
        )
    ]
    (table,) = tables(*shown(records))
    assert "12.5 % padding, 3 damaged rows left out, data made ready in 12.3 s" in table.facts[0]
    assert "ready" not in tables(*shown(made.repeats("single", made.SLOW)))[0].facts[0]
