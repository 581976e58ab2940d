"""The energy of a row and its ratios to the baseline, against figures worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import pytest
import recorded as made
from energetic import NO_NVML, NO_RAPL, PAIR, metered, pair_campaign, runs
from msgspec.structs import replace

from escala.analyse.energy_doubts import kind, read_text
from escala.analyse.row import Summary
from escala.analyse.summary import summarise
from escala.analyse.verdict import judge
from escala.terms.record import How, Record


def rows_of(records: Sequence[Record], grid: float | None = None) -> dict[str, Summary]:
    return {row.label: row for row in summarise(records, "single", grid_g_per_kwh=grid)}


def median(row: Summary, field: str) -> float:
    found = getattr(row, field)
    assert found is not None, field
    assert found.low <= found.median <= found.high
    return float(found.median)


def test_energy_and_edp_with_and_without_the_boards_that_idled() -> None:
    rows = rows_of(pair_campaign())
    single, ddp = rows["single"], rows["ddp x2"]
    assert median(single, "energy_j") == pytest.approx(100 * 2.3)
    assert median(single, "energy_host_j") == pytest.approx(120 * 2.3)
    assert median(single, "idle_share") == pytest.approx(20 / 120)
    assert median(single, "edp") == pytest.approx(100 * 2.3**2)
    assert median(single, "edp_host") == pytest.approx(120 * 2.3**2)
    assert median(ddp, "energy_j") == median(ddp, "energy_host_j") == pytest.approx(220 * 1.15)
    assert median(ddp, "idle_share") == 0
    assert median(ddp, "edp") == pytest.approx(220 * 1.15**2)
    assert (single.energy_parts, single.idle_parts) == (("cuda:0",), ("cuda:1",))
    assert (ddp.energy_parts, ddp.idle_parts) == (("cuda:0", "cuda:1"), ())
    assert (single.energy_runs, single.energy_reason) == (5, None)


def test_ratios_are_multiples_of_the_baseline_s() -> None:
    rows = rows_of(pair_campaign())
    for field in ("energy_ratio", "edp_ratio", "edp_host_ratio"):
        assert median(rows["single"], field) == 1
    ddp = rows["ddp x2"]
    assert median(ddp, "energy_ratio") == pytest.approx(220 * 1.15 / (100 * 2.3))
    assert median(ddp, "edp_ratio") == pytest.approx(220 * 1.15**2 / (100 * 2.3**2))
    assert median(ddp, "edp_host_ratio") == pytest.approx(220 * 1.15**2 / (120 * 2.3**2))


def test_the_thesis_s_normalisation() -> None:
    # 1.17e6 J against 1.15e6 J in 1/1.79 of the time: 0.55, which it rounds to 0.56 from figures it does not print.
    single = runs("single", [3600.0 - 0.3], {"cuda:0": 1.17e6 / 3600}, device="cuda", host=PAIR)
    seconds = 3600 / 1.79
    each = 1.15e6 / seconds / 2
    two = runs("two", [seconds - 0.3], {"cuda:0": each, "cuda:1": each}, device="cuda", host=PAIR, ways=2)
    row = rows_of([*single, *two])["two"]
    assert median(row, "energy_j") == pytest.approx(1.15e6)
    assert median(row, "edp_ratio") == pytest.approx(1.15 / 1.17 / 1.79)


def test_joules_and_samples_are_of_training_alone() -> None:
    (row,) = rows_of(runs("single", [2.0] * 5, {"package-0": 60.0})).values()
    assert median(row, "joules_per_sample") == pytest.approx(120 / 12_000)
    assert median(row, "samples_per_joule") == pytest.approx(100)
    assert {phase: found.median for phase, found in row.energy_phase_j.items()} == pytest.approx(
        {"train": 120, "validation": 6, "test": 12}
    )


def test_above_idle_and_watts_by_part() -> None:
    row = rows_of(pair_campaign())["single"]
    assert median(row, "energy_above_idle_j") == pytest.approx(80 * 2.3)
    assert {part: found.median for part, found in row.mean_w.items()} == pytest.approx({"cuda:0": 100, "cuda:1": 20})
    assert {part: found.median for part, found in row.peak_w.items()} == pytest.approx({"cuda:0": 110, "cuda:1": 30})


def test_below_idle_is_no_figure() -> None:
    records = runs("single", [2.0] * 5, {"package-0": 60.0}, idle_w={"package-0": 61.0})
    assert rows_of(records)["single"].energy_above_idle_j is None


def test_co2_only_where_the_grid_is_known() -> None:
    records = runs("single", [2.0] * 5, {"package-0": 60.0})
    assert rows_of(records)["single"].co2_g is None
    # 138 J at 400 g a kWh of 3.6 MJ.
    assert median(rows_of(records, 400.0)["single"], "co2_g") == pytest.approx(138 / 3.6e6 * 400)


def test_energy_is_of_some_runs_and_times_are_of_others() -> None:
    timed = [
        replace(one, trial=replace(one.trial, role="time"))
        for one in made.repeats("single", [2.0, 2.1, 1.9, 2.0, 2.0])
    ]
    read = runs("single", [2.5, 2.6, 2.7], {"package-0": 60.0}, first=5, role="energy")
    (row,) = summarise([*timed, *read], "single")
    assert (row.runs, row.energy_runs, row.energy_only, row.attempts) == (5, 3, 3, 8)
    assert median(row, "train_s") == 2.0
    assert median(row, "energy_j") == pytest.approx(60 * 2.9)
    assert median(row, "edp") == pytest.approx(60 * 2.9**2)  # by the time of the run that was read
    assert len(row.score.values if row.score else ()) == 8


def test_a_run_that_only_times_has_no_energy_whatever_it_holds() -> None:
    read = runs("single", [2.0] * 3, {"package-0": 60.0}, role="time")
    (row,) = summarise(read, "single")
    assert (row.energy_j, row.energy_runs) == (None, 0)
    assert row.energy_reason == "not measured: no run that reads energy came to its end undisturbed"


def test_a_disturbed_run_s_joules_do_not_count() -> None:
    records = runs("single", [2.0] * 4, {"package-0": 60.0})
    records += runs("single", [50.0], {"package-0": 60.0}, first=4, doubts=("disturbed",))
    (row,) = summarise(records, "single")
    assert row.energy_runs == 4
    assert row.energy_j is not None
    assert max(row.energy_j.values) == pytest.approx(138)


def test_without_counters_there_is_a_reason_and_no_figure() -> None:
    records = [replace(one, readings=(NO_NVML, NO_RAPL)) for one in made.repeats("single", made.SLOW)]
    (row,) = summarise(records, "single")
    told = "nvml: no NVIDIA driver on this machine; rapl: permission denied on energy_uj"
    assert row.energy_reason == f"not measured: {told}"
    fields = [name for name in Summary.__struct_fields__ if "energy" in name or "edp" in name or "joule" in name]
    assert not [name for name in fields if name != "energy_reason" and getattr(row, name)]


def test_what_never_ran_has_no_reason() -> None:
    rows = rows_of(made.troubled_campaign())
    assert rows["ddp x4"].energy_reason is None
    assert rows["single"].energy_reason == "not measured: no power meter was asked for"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("sampled", "cuda by sampled power against cuda by counter"),
        ("estimated", "cuda estimated against cuda by counter"),
    ],
)
def test_energy_that_was_read_in_other_ways_is_not_set_side_by_side(how: How, reason: str) -> None:
    single = runs("single", [2.0] * 5, {"cuda:0": 100.0}, device="cuda", host=made.GPUS)
    other = runs("other", [2.0] * 5, {"cuda:0": 90.0}, device="cuda", host=made.GPUS, how=how)
    row = rows_of([*single, *other])["other"]
    assert (row.energy_ratio, row.edp_ratio, row.edp_host_ratio) == (None, None, None)
    assert median(row, "energy_j") == pytest.approx(90 * 2.3)
    assert row.doubts["other meter"] == reason


def test_sums_of_other_parts_are_not_set_side_by_side() -> None:
    both = {"cuda:0": 100.0, "package-0": 50.0}
    single = runs("single", [2.0] * 5, both, device="cuda", host=made.GPUS)
    alone = runs("alone", [2.0] * 5, {"cuda:0": 100.0}, device="cuda", host=made.GPUS)
    cpu = runs("cpu", [9.0] * 5, {"package-0": 80.0}, host=made.GPUS)
    rows = rows_of([*single, *alone, *cpu])
    assert rows["alone"].doubts["other meter"] == "cuda by counter against cuda and package by counter"
    assert rows["alone"].edp_ratio is None
    # The same machine without devices is no other machine.
    assert median(rows["cpu"], "edp_ratio") == pytest.approx(80 * 9.3**2 / (150 * 2.3**2))
    assert "other meter" not in rows["cpu"].doubts


def test_a_run_read_in_another_way_than_the_others_is_left_out() -> None:
    records = runs("single", [2.0] * 4, {"package-0": 60.0})
    records += runs("single", [2.0], {"package-0": 90.0}, first=4, how="estimated")
    (row,) = summarise(records, "single")
    assert (row.energy_runs, row.energy_left_out) == (4, 1)
    assert row.energy_j is not None
    assert max(row.energy_j.values) == pytest.approx(138)
    assert row.doubts["other meter"] == "1 run read in another way is left out"


@pytest.mark.parametrize(("share", "doubted"), [(1.02, False), (0.98, False), (0.9, True), (1.1, True)])
def test_counter_and_integral_must_agree(share: float, doubted: bool) -> None:
    records = runs("single", [2.0] * 5, {"package-0": 60.0}, integral={"package-0": share})
    (row,) = summarise(records, "single")
    assert median(row, "counter_over_integral") == pytest.approx(1 / share)
    assert ("energy disagrees" in row.doubts) is doubted
    short = [replace(one, doubts=("short energy window",)) for one in records]
    assert "energy disagrees" not in summarise(short, "single")[0].doubts


def test_joules_to_the_target_count_runs_that_never_came_there() -> None:
    records = []
    for one in made.aimed("single", (4, 4, 5, None, 4)):
        assert one.to_score is not None
        assert one.phases is not None
        told = metered(one, {"package-0": 50.0})
        joules = 50 * one.to_score.total_s
        records.append(replace(told, to_score=replace(one.to_score, energy_j=joules, energy_reason=None)))
    (row,) = summarise(records, "single")
    assert row.to_score_energy_j is not None
    assert row.to_score_energy_j.values == pytest.approx([220, 220, 275, inf, 220])
    assert median(row, "to_score_edp") == pytest.approx(50 * 4.4**2)
    assert (row.edp_ratio, row.energy_ratio) == (None, None)


def test_a_disturbed_run_and_one_that_only_times_say_nothing_of_joules_to_the_target() -> None:
    records = []
    for number, one in enumerate(made.aimed("single", (4, None, None))):
        told = metered(one, {"package-0": 50.0}, role="time" if number == 2 else "both")
        assert told.to_score is not None
        account = replace(told.to_score, energy_j=220.0, energy_reason=None)
        records.append(replace(told, to_score=account, doubts=("disturbed",) if number == 1 else ()))
    (row,) = summarise(records, "single")
    assert row.to_score_energy_j is not None
    assert row.to_score_energy_j.values == (220.0,)


def test_runs_for_energy_do_not_say_how_soon() -> None:
    timed = made.aimed("single", (4, 4))
    read = [
        replace(one, id=f"{one.id}e", trial=replace(one.trial, id=f"{one.id}e", role="energy"))
        for one in made.aimed("single", (6,))
    ]
    (row,) = summarise([*timed, *read], "single")
    assert (row.reached, row.tried) == (3, 3)
    assert row.to_score_s is not None
    assert row.to_score_s.values == pytest.approx([4.4, 4.4])
    assert row.to_score_energy_j is None


def test_the_verdict_names_the_row_that_took_least() -> None:
    single = runs("single", [2.0, 2.01, 1.99], {"cuda:0": 100.0, "cuda:1": 20.0}, device="cuda", host=PAIR)
    watts = {"cuda:0": 60.0, "cuda:1": 60.0}
    two = runs("ddp x2", [1.0, 1.01, 0.99], watts, device="cuda", host=PAIR, ways=2)
    told = " ".join(judge(summarise([*single, *two], "single")).sentences)
    assert "ddp x2 took the least energy: 156 [155, 157] J against 230 [229, 231] J of single, and 0.38x" in told
    few = " ".join(judge(summarise([*single[:2], *two[:2]], "single")).sentences)
    assert "but fewer than 3 runs may show chance" in few
    shared = [replace(one, doubts=("shared device",)) for one in two]
    assert "least energy" not in " ".join(judge(summarise([*single, *shared], "single")).sentences)


def test_the_verdict_does_not_part_what_overlaps() -> None:
    single = runs("single", [2.0, 2.2, 1.9], {"package-0": 100.0})
    other = runs("other", [2.0, 2.1, 1.95], {"package-0": 100.0})
    told = " ".join(judge(summarise([*single, *other], "single")).sentences)
    assert "By energy" in told
    assert "cannot be told apart" in told


def test_without_energy_the_verdict_does_not_speak_of_it() -> None:
    assert "energy" not in " ".join(judge(summarise(made.clean_campaign(), "single")).sentences)


def test_kinds_of_parts() -> None:
    names = ("cuda:0", "package-1", "package-0-die-1", "dram-0", "cpu", "GPU-0a1b2c-1234", "board 3")
    assert [kind(name) for name in names] == ["cuda", "package", "package", "dram", "cpu", "board", "board"]
    assert read_text({"cuda:0": "counter", "cuda:1": "counter", "package-0": "estimated"}) == (
        "2 x cuda by counter, package estimated"
    )
    assert read_text({}) == "nothing"
