"""The log of results gives back what was written and refuses what another version wrote."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escala.store.journal import Journal, append, finished, newest, read
from escala.terms.errors import EscalaError
from escala.terms.record import SCHEMA, Record
from escala.terms.trial import Trial

MakeRecord = Callable[..., Record]


def signed(rest: bytes) -> bytes:
    """A line with the right checksum around `rest`, which follows the checksum's comma."""
    return b'{"checksum":"%s",%s\n' % (blake2b(rest, digest_size=8).hexdigest().encode(), rest)


def ids(found: Journal) -> list[str]:
    return [record.id for record in found.records]


def test_a_missing_log_holds_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "records.jsonl") == Journal((), b"")


def test_records_come_back_in_order(log: Path, make_record: MakeRecord) -> None:
    assert read(log) == Journal(tuple(make_record(name) for name in "abc"))
    assert log.read_bytes().count(b"\n") == 3


def test_any_json_reader_can_read_a_line(log: Path, make_record: MakeRecord) -> None:
    first = log.read_bytes().splitlines()[0]
    line = json.loads(first)
    assert list(line)[:3] == ["checksum", "schema", "id"]
    assert set(line) == {"checksum", *(field.name for field in msgspec.structs.fields(Record))}
    assert line["losses"] == [2.302, 1.5, 0.1 + 0.2]
    assert signed(first.split(b",", 1)[1]) == first + b"\n"


def test_an_append_does_not_touch_earlier_lines(log: Path, make_record: MakeRecord) -> None:
    before = log.read_bytes()
    append(log, make_record("d"))
    assert log.read_bytes().startswith(before)


def test_losses_that_are_not_finite_come_back_and_stay_readable(tmp_path: Path, make_record: MakeRecord) -> None:
    path = tmp_path / "records.jsonl"
    append(path, make_record(outcome="diverged", losses=(1.0, math.inf, -math.inf, math.nan)))
    losses = read(path).records[0].losses
    assert losses[:3] == (1.0, math.inf, -math.inf)
    assert math.isnan(losses[3])

    def no_constant(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    assert json.loads(path.read_bytes(), parse_constant=no_constant)["losses"] == [1, "Infinity", "-Infinity", "NaN"]


@pytest.mark.parametrize("text", ["null", "NaN", "Infinity", "true", "1", ""])
def test_texts_that_look_like_something_else_stay_texts(tmp_path: Path, make_record: MakeRecord, text: str) -> None:
    path = tmp_path / "records.jsonl"
    record = make_record(reason=text)
    append(path, record)
    assert read(path).records[0].reason == text


@pytest.mark.parametrize("options", [{"rate": math.nan}, {"a": {"b": [1.0, math.inf]}}])
def test_an_option_that_is_not_finite_is_refused_before_anything_is_written(
    tmp_path: Path, make_record: MakeRecord, make_trial: Callable[..., Trial], options: dict[str, object]
) -> None:
    path = tmp_path / "records.jsonl"
    with pytest.raises(EscalaError, match=r"CFG-RANGE\] trial\.options\.(rate|a\.b\[1\]): is not a finite"):
        append(path, make_record(trial=make_trial(options=options)))
    assert not path.exists()


def test_a_name_that_is_no_text_does_not_lose_the_record(tmp_path: Path, make_record: MakeRecord) -> None:
    path = tmp_path / "records.jsonl"
    append(path, make_record(reason=os.fsdecode(b"no file caf\xe9")))
    assert read(path).records[0].reason == r"no file caf\udce9"


def test_without_curves_all_else_is_equal(log: Path, make_record: MakeRecord) -> None:
    for name, record in zip("abc", read(log, curves=False).records, strict=True):
        assert record == msgspec.structs.replace(make_record(name), losses=())


def test_a_line_without_later_fields_reads_with_their_defaults(log: Path) -> None:
    line = json.loads(log.read_bytes().splitlines()[0])
    kept = {key: line[key] for key in ("schema", "id", "trial", "outcome", "host")}
    log.write_bytes(signed(json.dumps({**kept, "added_later": 1}, separators=(",", ":")).encode()[1:]))
    assert [record.losses for record in read(log).records] == [()]
    assert [record.memory_bytes for record in read(log, curves=False).records] == [{}]


NUMBERS = st.floats()
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FINITE_DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_record_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    make_record: MakeRecord,
    make_trial: Callable[..., Trial],
    data: st.DataObject,
) -> None:
    path = tmp_path_factory.mktemp("round") / "records.jsonl"
    options = data.draw(st.dictionaries(st.sampled_from("abcd"), FINITE_DATA, max_size=3))
    base = make_record(trial=make_trial(options=options))
    written = []
    for _ in range(data.draw(st.integers(1, 3))):
        record = msgspec.structs.replace(
            base,
            id=data.draw(TEXTS),
            outcome=data.draw(st.sampled_from(["done", "diverged", "out of memory", "interrupted"])),
            reason=data.draw(st.none() | TEXTS),
            setup_s=data.draw(st.none() | NUMBERS),
            losses=tuple(data.draw(st.lists(NUMBERS, max_size=8))),
            block_seconds=tuple(data.draw(st.lists(NUMBERS, max_size=8))),
            samples_per_second=data.draw(st.none() | NUMBERS),
            flops_per_sample=data.draw(st.none() | st.integers(0, 2**64)),
            memory_bytes=data.draw(st.dictionaries(TEXTS, st.integers(0, 2**50), max_size=2)),
            software=data.draw(st.dictionaries(TEXTS, TEXTS, max_size=2)),
        )
        append(path, record)
        written.append(record)
    # Compared in words, because NaN equals nothing.
    assert repr(read(path)) == repr(Journal(tuple(written)))
    slim = tuple(msgspec.structs.replace(record, losses=()) for record in written)
    assert repr(read(path, curves=False)) == repr(Journal(slim))


@pytest.mark.parametrize("curves", [True, False])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_newer_schema_is_named_with_ours(log: Path, curves: bool, end: bytes) -> None:
    line = signed(b'"schema":%d,"id":"z","all":"new"}' % (SCHEMA + 6)).removesuffix(b"\n")
    log.write_bytes(log.read_bytes() + line + end)
    with pytest.raises(EscalaError) as caught:
        read(log, curves=curves)
    assert (caught.value.code, caught.value.exit) == ("RES-SCHEMA", 6)
    assert f"{log} line 4" in str(caught.value)
    assert f"schema {SCHEMA + 6}, this version reads up to {SCHEMA}" in str(caught.value)


@pytest.mark.parametrize(
    "rest",
    [
        b'"schema":1}',
        b"not json at all",
        b'"schema":1,"id":5}',
        b'"schema":1,"id":"\xff\xfe"}',
        b'"schema":99999999999999999999}',
        b'"schema":1,"trial":{"options":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_002,
        b'"schema":1,"trial":{"options":{"n":' + b"9" * 10_000 + b"}}}",
    ],
)
@pytest.mark.parametrize("curves", [True, False])
def test_a_whole_line_that_is_no_record_is_refused(tmp_path: Path, rest: bytes, curves: bool) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(signed(rest))
    with pytest.raises(EscalaError, match="RES-SCHEMA"):
        read(path, curves=curves)


def test_the_last_record_of_a_trial_counts(make_record: MakeRecord) -> None:
    first, other, last = make_record("a", outcome="interrupted"), make_record("b"), make_record("a")
    assert newest([first, other, last]) == {"a": last, "b": other}


@pytest.mark.parametrize("outcome", ["done", "unfit", "out of memory", "diverged", "failed", "interrupted"])
def test_only_an_interrupted_trial_runs_again(make_record: MakeRecord, outcome: str) -> None:
    assert finished(make_record(outcome=outcome)) == (outcome != "interrupted")
