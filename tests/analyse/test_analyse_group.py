"""What may be put together, and what must not."""

from __future__ import annotations

import msgspec
import recorded as made
from hypothesis import given, settings
from hypothesis import strategies as st

from escala.analyse.group import grouped
from escala.terms.experiment import ExecutionSpec
from escala.terms.trial import Role


def labels_and_sizes(records: list[made.Record]) -> list[tuple[str, int]]:
    return [(group.records[0].trial.label, len(group.records)) for group in grouped(records)]


def test_repeats_of_a_label_come_together_whatever_lies_between() -> None:
    slow, fast = made.repeats("single", made.SLOW), made.repeats("ddp x2", made.FAST, ways=2)
    mixed = [record for pair in zip(slow, fast, strict=True) for record in pair]
    assert labels_and_sizes(mixed) == [("single", 5), ("ddp x2", 5)]


def test_the_newest_record_of_an_id_counts() -> None:
    failed = made.make(outcome="failed", reason="gone")
    again = made.make(train_s=3.0)
    (group,) = grouped([failed, made.make(repeat=1), again])
    assert [record.outcome for record in group.records] == ["done", "done"]
    assert group.records[-1] == again


def test_an_interrupted_run_neither_counts_nor_hides_an_earlier_one() -> None:
    assert grouped([made.make(outcome="interrupted")]) == ()
    done = made.make()
    (group,) = grouped([done, made.make(outcome="interrupted")])
    assert group.records == (done,)


def test_another_host_another_torch_and_other_data_stay_apart() -> None:
    records = [made.make(), made.make(host=made.OTHER_CPU), made.make(host=made.OTHER_TORCH)]
    records += [made.make(data=made.GENERATED), made.make(point={"train.batch": 64})]
    assert len(grouped(records)) == 5


def test_one_label_with_two_definitions_is_not_averaged() -> None:
    one = made.make()
    trial = msgspec.structs.replace(one.trial, id="other", execution=ExecutionSpec(precision="bf16"))
    other = msgspec.structs.replace(one, id="other", trial=trial)
    assert len(grouped([one, other])) == 2


def test_a_seed_of_its_own_does_not_part_repeats() -> None:
    records = made.repeats("single", made.SLOW)
    seeded = [
        msgspec.structs.replace(record, trial=msgspec.structs.replace(record.trial, seed=record.trial.repeat))
        for record in records
    ]
    assert [len(group.records) for group in grouped(seeded)] == [5]


def test_a_run_that_never_saw_its_data_stands_with_its_neighbours() -> None:
    unfit = made.make("ddp x4", ways=4, outcome="unfit", reason="too few cores", data=None)
    assert [group.digest for group in grouped([unfit, *made.repeats("single", made.SLOW)])] == ["d1", "d1"]
    assert [group.digest for group in grouped([unfit])] == [None]


def test_a_failed_repeat_stands_with_the_done_ones() -> None:
    failed = made.make("ddp x2", 5, ways=2, outcome="failed", reason="killed", data=None)
    (group,) = grouped([*made.repeats("ddp x2", made.FAST, ways=2), failed])
    assert (len(group.records), len(group.done), len(group.timed)) == (6, 5, 5)


def test_a_disturbed_run_is_done_but_not_timed() -> None:
    records = [*made.repeats("single", made.SLOW), made.make("single", 5, train_s=90.0, doubts=("disturbed",))]
    (group,) = grouped(records)
    assert (len(group.done), len(group.timed)) == (6, 5)


def test_runs_for_times_and_runs_for_energy_are_one_row() -> None:
    roles: tuple[Role, ...] = ("time", "time", "energy", "both", "energy")
    records = [
        msgspec.structs.replace(record, trial=msgspec.structs.replace(record.trial, role=role))
        for record, role in zip(made.repeats("single", made.SLOW), roles, strict=True)
    ]
    (group,) = grouped(records)
    assert len(group.done) == 5
    assert [record.trial.role for record in group.timed] == ["time", "time", "both"]
    assert [record.trial.role for record in group.metered] == ["energy", "both", "energy"]


@settings(deadline=None, max_examples=40)
@given(order=st.permutations(range(10)))
def test_groups_do_not_depend_on_the_order_of_records(order: list[int]) -> None:
    records = [*made.repeats("single", made.SLOW), *made.repeats("ddp x2", made.FAST, ways=2)]
    found = grouped([records[place] for place in order])
    assert {frozenset(record.id for record in group.records) for group in found} == {
        frozenset(record.id for record in records[:5]),
        frozenset(record.id for record in records[5:]),
    }
