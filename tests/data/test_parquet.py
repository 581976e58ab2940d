"""Sets in the hub's parquet layout, and each way in which such a file can be wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parquet_files import NAMES, TEXTS, images, pa, png, pq, questions, write, write_set

from escala.data import find, parquet, table
from escala.data.base import Source
from escala.data.check import check_source
from escala.data.texts import Labelled, Question, TextSource
from escala.terms.errors import EscalaError, Exit


def source(path: Path) -> Source:
    found = parquet.recognise(path)
    assert isinstance(found, Source)
    return found


def texts(path: Path) -> TextSource:
    found = parquet.recognise(path)
    assert isinstance(found, TextSource)
    return found


def read_all(path: Path, part: Any) -> list[Any]:
    found = parquet.recognise(path)
    if isinstance(found, Source):
        found.facts()
        found.targets(part)
        return list(found.blocks(part))
    return [] if found is None else list(found.documents(part))


def refused(path: Path, part: str = "train") -> EscalaError:
    """The error with which a set is refused, wherever it shows."""
    with pytest.raises(EscalaError) as caught:
        read_all(path, part)
    assert caught.value.exit == Exit.DATA
    return caught.value


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 3)])
@pytest.mark.parametrize("inside", ["", "data", "plain_text"])
def test_reads_images_in_order(tmp_path: Path, shape: tuple[int, ...], inside: str) -> None:
    rows = images(5, shape)
    folder = write_set(tmp_path / "set" / inside, rows, images(2, shape))
    found = source(tmp_path / "set")
    facts = found.facts()
    expected = np.random.default_rng(5).integers(0, 256, (5, *shape), dtype=np.uint8)
    if len(shape) == 3:
        expected = expected.transpose(0, 3, 1, 2)
    assert (facts.shape, facts.dtype, facts.classes, facts.kind) == (expected.shape[1:], "uint8", 3, "images")
    assert np.concatenate(list(found.blocks("train"))).tolist() == expected.tolist()
    assert found.targets("train").tolist() == [0, 1, 2, 0, 1]
    assert found.targets("test").tolist() == [0, 1]
    assert str(folder).startswith(facts.where)


def test_image_bytes_without_a_name(tmp_path: Path) -> None:
    rows = {"img": [png([[number]]) for number in range(4)], "fine_label": [0, 1, 0, 1], "coarse_label": [9] * 4}
    found = source(write_set(tmp_path, rows))
    assert np.concatenate(list(found.blocks("train"))).ravel().tolist() == [0, 1, 2, 3]
    assert found.facts().classes == 2


def test_reads_labelled_texts_with_the_names_of_their_classes(tmp_path: Path) -> None:
    found = texts(write_set(tmp_path, TEXTS, metadata=NAMES))
    assert (found.facts().kind, found.facts().classes, found.facts().class_names) == (
        "labelled text",
        2,
        ("neg", "pos"),
    )
    assert list(found.documents("train")) == [
        Labelled("one", 0),
        Labelled("two\nlines", 1),
        Labelled("drei: ä", 1),
        Labelled("", 0),
    ]


def test_reads_texts(tmp_path: Path) -> None:
    found = texts(write_set(tmp_path, {"text": TEXTS["text"]}))
    assert found.facts().kind == "text"
    assert list(found.documents("train")) == ["one", "two\nlines", "drei: ä"]


def test_reads_questions(tmp_path: Path) -> None:
    rows = questions(3)
    rows["answers"][2] = {"text": [], "answer_start": []}
    found = texts(write_set(tmp_path, rows))
    answers = (("a bell", 6), ("bell", 8))
    assert list(found.documents("train")) == [
        Question("q0", "what is it?", "it is a bell", answers),
        Question("q1", "what is it?", "it is a bell", answers),
        Question("q2", "what is it?", "it is a bell", ()),
    ]


def test_the_digest_is_of_the_content(tmp_path: Path) -> None:
    first = texts(write_set(tmp_path / "a", TEXTS)).digest()
    assert texts(write_set(tmp_path / "b", TEXTS, group=1)).digest() == first
    assert texts(write_set(tmp_path / "c", TEXTS | {"label": [0, 1, 1, 1]})).digest() != first


def test_rows_for_validation_stand_in_for_missing_test_rows(tmp_path: Path) -> None:
    write_set(tmp_path, TEXTS)
    os.rename(tmp_path / "test-00000-of-00001.parquet", tmp_path / "validation-00000-of-00001.parquet")
    found = texts(tmp_path)
    assert found.parts() == ("train", "test")
    assert "those for validation" in found.facts().notes[0]
    write(tmp_path / "test-00000-of-00001.parquet", TEXTS)
    assert texts(tmp_path).parts() == ("train", "test", "validation")
    write(tmp_path / "unsupervised-00000-of-00001.parquet", TEXTS)
    assert "unsupervised" in texts(tmp_path).facts().notes[0]


def test_a_folder_for_each_part(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write(tmp_path / part / "0000.parquet", TEXTS)
    assert len(list(texts(tmp_path).documents("test"))) == 4


def test_several_sets_in_a_folder_are_named(tmp_path: Path) -> None:
    for name in ("wikitext-2", "wikitext-103"):
        write_set(tmp_path / name, TEXTS)
    error = refused(tmp_path)
    assert error.code == "DATA-PATH"
    assert "wikitext-103, wikitext-2" in error.what


def test_a_lone_file_is_one_part_and_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "rows", TEXTS)
    assert len(list(texts(path).documents("train"))) == 4
    assert refused(path, "test").what == "holds no rows for test"


def test_other_files_are_left_to_others(tmp_path: Path) -> None:
    (tmp_path / "train" / "cat").mkdir(parents=True)
    (tmp_path / "train" / "cat" / "1.png").write_bytes(png([[1]]))
    (tmp_path / "notes.txt").write_text("nothing")
    assert parquet.recognise(tmp_path) is None
    assert parquet.recognise(tmp_path / "notes.txt") is None
    assert isinstance(find(str(write(tmp_path / "a.parquet", TEXTS)), {}), TextSource)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    write_set(tmp_path, TEXTS)
    (tmp_path / "train-00001-of-00002.parquet").unlink()
    error = refused(tmp_path)
    assert (error.code, error.what) == ("DATA-PARQ", "train-00001-of-00002.parquet is missing")


@pytest.mark.parametrize(
    ("columns", "column", "told"),
    [
        ({"text": ["a"], "label": [[1]]}, "label", "list"),
        ({"text": ["a"], "label": [{"x": 1}]}, "label", "struct"),
        ({"text": ["a"], "label": ["one"]}, "label", "string"),
        ({"text": [["a"]], "label": [1]}, "text", "list"),
        ({"image": ["a.png"], "label": [1]}, "image", "string"),
        ({"image": [{"path": "a.png"}], "label": [1]}, "image", "struct"),
        ({"image": [b"a"]}, "label", "is missing"),
        ({"question": ["q"], "context": ["c"], "id": ["1"]}, "answers", "is missing"),
        ({**questions(1), "answers": [["a bell"]]}, "answers", "list"),
        ({**questions(1), "answers": [{"text": ["a"], "answer_start": ["0"]}]}, "answers", "struct"),
    ],
)
def test_a_missing_or_foreign_column_is_named(
    tmp_path: Path, columns: dict[str, Any], column: str, told: str
) -> None:
    error = refused(write(tmp_path / "set.parquet", columns))
    assert error.code == "DATA-PARQ"
    assert error.where.endswith(f"column {column}")
    assert told in error.what


def test_unknown_columns_are_listed(tmp_path: Path) -> None:
    error = refused(write(tmp_path / "set.parquet", {"x": [1], "y": [2]}))
    assert (error.code, error.what) == ("DATA-PARQ", "holds the columns x, y")


def test_parts_must_hold_the_same(tmp_path: Path) -> None:
    error = refused(write_set(tmp_path, TEXTS, {"text": ["a"]}))
    assert (error.code, error.what) == ("DATA-PARQ", "holds text")
    write(tmp_path / "test-00000-of-00001.parquet", TEXTS)
    write(tmp_path / "train-00001-of-00002.parquet", {"text": ["a"], "label": pa.array([1], pa.int32())})
    assert "other columns" in refused(tmp_path).what


@pytest.mark.parametrize(
    ("rows", "column"),
    [
        (TEXTS | {"label": [0, 1, 1, None]}, "label"),
        (TEXTS | {"text": ["a", "b", "c", None]}, "text"),
        (images(4) | {"image": [*images(3)["image"], None]}, "image"),
        (images(4) | {"image": [*images(3)["image"], {"bytes": None, "path": "a.png"}]}, "image"),
        (questions(4) | {"answers": [*questions(3)["answers"], None]}, "answers"),
        (questions(4) | {"answers": [*questions(3)["answers"], {"text": None, "answer_start": [1]}]}, "answers"),
        (questions(4) | {"answers": [*questions(3)["answers"], {"text": ["a"], "answer_start": [1, 2]}]}, "answers"),
    ],
)
def test_a_missing_value_is_named_with_column_and_row_group(
    tmp_path: Path, rows: dict[str, Any], column: str
) -> None:
    error = refused(write(tmp_path / "train-00000-of-00001.parquet", rows, group=2))
    assert error.code == "DATA-PARQ"
    assert error.where.endswith(f"row group 1, column {column}")
    assert "row 3" in error.what


@pytest.mark.parametrize("label", [2, -1])
@pytest.mark.parametrize("rows", [TEXTS, images(4)])
def test_a_label_outside_the_classes_is_named(tmp_path: Path, rows: dict[str, Any], label: int) -> None:
    path = write(tmp_path / "train.parquet", rows | {"label": [0, 1, label, label]}, metadata=NAMES)
    error = refused(path)
    assert error.code == "DATA-LABEL"
    assert error.what == f"the label of row 2 (from 0) is {label}; labels out of range: 2"
    found = check_source("set", find(str(path), {}), lambda *_: None)
    assert any("row 2 (from 0)" in fault.what for fault in found.faults)


def test_wrong_questions_are_named_by_what_is_wrong(tmp_path: Path) -> None:
    rows = questions(6)
    rows["id"][1] = "q0"
    for number, (text, start) in enumerate((("a bell", -1), ("a bell", 99), ("ball", 8), ("", 0)), start=2):
        rows["answers"][number] = {"text": [text], "answer_start": [start]}
    error = refused(write(tmp_path / "train.parquet", rows))
    assert error.code == "DATA-QA"
    for told in ("the same id twice: q0", "before the text: q2", "behind the text: q3", "where it should: q4"):
        assert told in error.what
    assert "an empty answer: q5" in error.what


@pytest.mark.parametrize("data", [b"", b"\x89PNG", images(1, (40, 40))["image"][0]["bytes"][:700]])
def test_a_damaged_image_is_named(tmp_path: Path, data: bytes) -> None:
    rows = images(4)
    rows["image"][3] = {"bytes": data, "path": "x"}
    error = refused(write(tmp_path / "train.parquet", rows))
    assert error.code == "DATA-IMG"
    assert "row group 1, row 3, column image" in error.where
    assert f"{len(data)} bytes" in error.what


def test_an_image_of_another_size_or_of_far_too_many_pixels(tmp_path: Path) -> None:
    rows = images(4)
    for number in (3, 1):
        rows["image"][number] = {"bytes": png([[1, 2]]), "path": "x"}
        error = refused(write(tmp_path / "train.parquet", rows))
        assert (error.code, error.what) == ("DATA-PARQ", "an image has the shape (1, 2)")
    huge = bytearray(png([[1]]))
    huge[16:24] = (60_000).to_bytes(4, "big") * 2
    huge[29:33] = zlib.crc32(huge[12:29]).to_bytes(4, "big")
    rows["image"][0] = {"bytes": bytes(huge), "path": "x"}
    assert refused(write(tmp_path / "train.parquet", rows)).code == "DATA-HUGE"


def test_text_that_is_no_utf8(tmp_path: Path) -> None:
    error = refused(write(tmp_path / "train.parquet", {"text": _unchecked([b"ok", b"caf\xe4"])}))
    assert error.code == "DATA-ENC"
    assert "row group 0, column text" in error.where


def _unchecked(values: Sequence[bytes]) -> Any:
    """Strings as another program may write them: bytes that nobody checked."""
    raw = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())


def test_no_rows(tmp_path: Path) -> None:
    empty = {"text": pa.array([], pa.string())}
    assert refused(write(tmp_path / "train.parquet", empty)).code == "DATA-EMPTY"
    none = {"image": pa.array([], pa.binary()), "label": pa.array([], pa.int64())}
    assert refused(write(tmp_path / "other.parquet", none)).code == "DATA-EMPTY"


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "train.parquet", TEXTS)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        error = refused(path)
        assert error.code == "DATA-PARQ", length
        assert str(path) in error.where


WHOLE: dict[str, bytes] = {}


@settings(max_examples=150, deadline=None)
@given(place=st.integers(0, 10**6), change=st.integers(1, 255))
def test_a_changed_byte_gives_the_same_rows_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, place: int, change: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.parquet"
    if "content" not in WHOLE:
        WHOLE["content"] = write(path, TEXTS).read_bytes()
    data = bytearray(WHOLE["content"])
    # The pages alone, each of which has a checksum; the footer has none, so its changes may go unseen.
    pages = len(data) - 12 - int.from_bytes(data[-8:-4], "little")
    data[4 + place % pages] ^= change
    path.write_bytes(data)
    with suppress(EscalaError):
        assert [row.text for row in read_all(path, "train")] == TEXTS["text"]


def test_one_row_group_is_held_at_a_time(tmp_path: Path) -> None:
    path = write(tmp_path / "train.parquet", {"text": [str(number) for number in range(100)]}, group=10)
    sizes = [len(batch.columns["text"]) for batch in parquet.ParquetTable((path,)).batches(["text"], 7)]
    assert sizes == [7, 3] * 10


def test_a_large_row_group_is_read_in_bounded_memory(tmp_path: Path) -> None:
    drawn = np.random.default_rng(0)
    path = tmp_path / "train.parquet"
    # Pages of 1 MiB, and no dictionary, which is held whole while its rows are read.
    pq.write_table(pa.table({"image": [drawn.bytes(1000) for _ in range(20_000)]}), path, use_dictionary=False)
    before = pa.total_allocated_bytes()
    batches = parquet.ParquetTable((path,)).batches(["image"], 200)
    tracemalloc.start()
    try:
        # What is read from the file is Python's own memory, what is made of it arrow's.
        held = [pa.total_allocated_bytes() - before + tracemalloc.get_traced_memory()[1] for _ in batches]
    finally:
        tracemalloc.stop()
    assert len(held) == 100
    assert max(held) < path.stat().st_size / 2


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "train.parquet", TEXTS)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(EscalaError) as caught:
        parquet.recognise(path)
    assert caught.value.code == "ENV-EXTRA"
    assert caught.value.next_step == "pip install 'escala[datasets]'"


def test_nothing_of_arrow_is_imported_before_it_is_needed() -> None:
    check = "import sys, escala.data\nassert not {'pyarrow', 'PIL', 'datasets'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], timeout=60).returncode == 0
    assert table.arrow().__name__ == "pyarrow"
