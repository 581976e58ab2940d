"""A whole reading: what is counted, and that one fault does not hide another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from idx_files import FILES, arrays, write_set

from escala.data import Request, describe
from escala.data.base import Facts, Inputs, Part, Source, Targets
from escala.data.check import check, check_source
from escala.data.checked import MOST, Checked, Fault, Faults, PartFacts, Progress, Scan
from escala.data.texts import Document, Labelled, Question, TextFacts, TextSource
from escala.report.data_text import check_text
from escala.terms.errors import EscalaError


def quiet(what: str, done: int, total: int | None) -> None:
    del what, done, total


@dataclass(frozen=True)
class Rows(Source):
    """Rows from memory; parts named in `broken` cannot be read, `whole` ones not even for their labels."""

    labels: dict[Part, list[int]]
    inputs: dict[Part, Inputs] = field(default_factory=dict)
    broken: tuple[Part, ...] = ()
    classes: int = 3
    names: tuple[str, ...] = ("carp", "eel", "ray")
    whole: bool = False

    def facts(self) -> Facts:
        return Facts("rows", "real", "memory", (2,), "float32", self.classes, ("odd",), class_names=self.names)

    def targets(self, part: Part) -> Targets:
        if self.whole:
            self._open(part)
        return np.array(self.labels[part], np.int64)

    def _open(self, part: Part) -> None:
        if part in self.broken:
            raise EscalaError("DATA-IMG", f"{part}.png", "cut in half", expected="a whole image")

    def blocks(self, part: Part) -> Iterator[Inputs]:
        self._open(part)
        rows = self.inputs.get(part, np.arange(2 * len(self.labels[part]), dtype=np.float32).reshape(-1, 2))
        yield rows[:1]
        yield rows[1:]


@dataclass(frozen=True)
class Documents(TextSource):
    """Texts from memory."""

    content: dict[Part, Sequence[Document]]
    kind: str = "text"
    classes: int = 0
    broken: bool = False

    def facts(self) -> TextFacts:
        return TextFacts("documents", "real", "memory", self.kind, self.classes)  # type: ignore[arg-type]

    def digest(self) -> str:
        return "d" * 64

    def documents(self, part: Part) -> Iterator[Document]:
        yield from self.content[part]
        if self.broken:
            raise EscalaError("DATA-ENC", "a.txt, byte 7", "0xe4 is no UTF-8")


def codes(found: Checked) -> list[str]:
    return [fault.code for fault in found.faults]


def test_a_sound_set(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set", arrays())
    told = list[tuple[str, int, int | None]]()
    found = check(str(folder), {}, lambda *moved: told.append(moved))
    assert found.sound
    assert (found.name, found.kind, found.shape, found.dtype) == ("set", "images", (28, 28), "uint8")
    assert [(part.part, part.rows, part.per_class) for part in found.parts] == [
        ("train", 60, (6,) * 10),
        ("test", 20, (2,) * 10),
    ]
    assert (found.low, found.high) == (0, 255)
    assert found.digest == describe(Request(str(folder)), {}, tmp_path, print).digest
    assert told == [("train", 60, 60), ("test", 20, 20)]


def test_a_generated_set_is_drawn() -> None:
    found = check("synthetic:600+100", {}, quiet)
    assert found.sound
    assert [part.rows for part in found.parts] == [600, 100]
    assert len(found.digest) == 64


def test_damage_in_one_file_does_not_hide_that_in_another(tmp_path: Path) -> None:
    content = arrays()
    content[FILES[1]][[7, 11]] = (10, 255)
    folder = write_set(tmp_path / "set", content)
    path = folder / f"{FILES[2]}.gz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(data)
    found = check(str(folder), {}, quiet)
    assert not found.sound
    assert codes(found) == ["DATA-LABEL", "DATA-IDX"]
    assert "the label of row 7 (from 0) is 10" in found.faults[0].what
    assert found.digest == ""


def test_a_header_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set", arrays(), packed=False)
    (folder / FILES[0]).write_bytes(b"nothing")
    found = check(str(folder), {}, quiet)
    assert (found.name, codes(found), found.parts) == (str(folder), ["DATA-IDX"], ())
    assert "1 fault" in check_text(found)


def test_nothing_there_is_an_error_at_once() -> None:
    with pytest.raises(EscalaError) as caught:
        check("/no/such/place", {}, quiet)
    assert caught.value.code == "DATA-PATH"


def test_labels_outside_the_classes_are_named_and_counted() -> None:
    train = [0, 1, 2, -1, 3, -(2**63)]
    found = check_source("rows", Rows({"train": train, "test": [1]}), quiet)
    assert codes(found) == ["DATA-LABEL"] * 3
    assert [fault.what.split(" (labels")[0] for fault in found.faults] == [
        "the label of row 3 (from 0) is -1",
        "the label of row 4 (from 0) is 3",
        f"the label of row 5 (from 0) is {-(2**63)}",
    ]
    assert found.faults[0].where == "memory, train"
    assert found.parts[0].per_class == (1, 1, 1)


def test_only_the_first_faults_are_kept_in_words() -> None:
    found = check_source("rows", Rows({"train": [0, 1, 2] + [9] * 50, "test": [9] * 3}), quiet)
    assert len(found.faults) == MOST
    assert found.fault_count == 53
    assert f"and {53 - MOST} more" in check_text(found)


def test_classes_that_are_never_learnt() -> None:
    found = check_source("rows", Rows({"train": [0, 0], "test": [0, 1, 2]}), quiet)
    assert codes(found) == ["DATA-CLASS"]
    assert "eel, ray" in found.faults[0].what


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("broken", [("train",), ("test",), ("train", "test")])
def test_each_broken_part_is_one_fault(broken: tuple[Part, ...], whole: bool) -> None:
    # Labels that lie in the same file as images are read by themselves, and break off at the same place.
    found = check_source("rows", Rows({"train": [0, 1, 2], "test": [0]}, broken=broken, whole=whole), quiet)
    assert found.fault_count == len(broken)
    assert [fault.where for fault in found.faults] == [f"{part}.png" for part in broken]
    assert found.faults[0].what == "cut in half (a whole image)"
    assert found.digest == ""


def test_values_that_are_not_finite() -> None:
    rows = np.zeros((4, 2), np.float32)
    rows[2, 1], rows[3, 0] = np.nan, np.inf
    found = check_source("rows", Rows({"train": [0, 1, 2, 0], "test": [0]}, {"train": rows}), quiet)
    assert codes(found) == ["DATA-VALUE"]
    assert "row 2 (from 0)" in found.faults[0].what
    assert found.fault_count == 2


def test_more_rows_than_labels() -> None:
    found = check_source(
        "rows", Rows({"train": [0, 1, 2], "test": [0]}, {"train": np.zeros((5, 2), np.float32)}), quiet
    )
    assert codes(found) == ["DATA-CHANGED"]


def test_texts_are_measured_in_bytes() -> None:
    found = check_source("documents", Documents({"train": ["ä\nlonger", "b"], "test": ["c"]}), quiet)
    assert found.sound
    assert [(part.rows, part.figures) for part in found.parts] == [
        (2, {"bytes": 10, "longest line": 6}),
        (1, {"bytes": 1, "longest line": 1}),
    ]
    assert found.digest == "d" * 64


def test_labelled_texts() -> None:
    train = [Labelled("a", 0), Labelled("b", 2), Labelled("c", 1), Labelled("d", -100)]
    source = Documents({"train": train, "test": [Labelled("e", 1)]}, "labelled text", 2)
    found = check_source("documents", source, quiet)
    assert [part.per_class for part in found.parts] == [(1, 1), (0, 1)]
    assert [fault.what.split(" (labels")[0] for fault in found.faults] == [
        "the label of row 1 (from 0) is 2",
        "the label of row 3 (from 0) is -100",
    ]
    assert found.digest == ""


def test_a_text_that_cannot_be_read_keeps_what_was_counted() -> None:
    found = check_source("documents", Documents({"train": ["a", "b"], "test": ["c"]}, broken=True), quiet)
    assert [part.rows for part in found.parts] == [2, 1]
    assert codes(found) == ["DATA-ENC", "DATA-ENC"]


def test_questions_are_counted_by_what_is_wrong_with_them() -> None:
    context = "it is a bell"

    def asked(identity: str, *answers: tuple[str, int]) -> Question:
        return Question(identity, "what is it?", context, answers)

    train = [
        asked("good", ("bell", 8), ("a bell", 6)),
        asked("none"),
        asked("before", ("bell", -1)),
        asked("behind", ("bell", 12)),
        asked("over", ("bells", 8)),
        asked("other", ("bell", 7)),
        asked("empty", ("", 3)),
        asked("good", ("bell", 8)),
    ]
    found = check_source("documents", Documents({"train": train, "test": [train[0]]}, "questions"), quiet)
    assert found.parts[0].figures["answers"] == 8
    assert found.parts[0].figures["without answer"] == 1
    assert sorted((fault.what, fault.count) for fault in found.faults) == [
        ("an answer that begins before the text: before", 1),
        ("an answer that begins behind the text: behind", 1),
        ("an answer that does not stand where it should: over, other", 2),
        ("an empty answer: empty", 1),
        ("the same id twice: good", 1),
    ]
    assert set(codes(found)) == {"DATA-QA"}


def test_what_is_no_fault_of_the_data_is_raised() -> None:
    class Unsafe(Rows):
        def blocks(self, part: Part) -> Iterator[Inputs]:
            raise EscalaError("SEC-PICKLE", part, "asks for os.system")

    with pytest.raises(EscalaError) as caught:
        check_source("rows", Unsafe({"train": [0], "test": [0]}), quiet)
    assert caught.value.code == "SEC-PICKLE"


@dataclass(frozen=True)
class Files(Rows):
    """Rows that come from files, one of which is damaged where `strict` looks closely."""

    def scan(self, faults: Faults, progress: Progress, *, strict: bool) -> Scan:
        progress("files", 4, 4)
        if strict:
            faults.add(Fault("DATA-IMG", "train/eel/1.jpg", "one byte is missing"))
        return Scan((PartFacts("train", 3, (1, 1, 1)),), self.names, {"590 x 445 L": 3, "10 x 10 RGB": 1})


def test_a_source_of_files_is_scanned_file_by_file() -> None:
    source = Files({"train": [0, 1, 2], "test": [0]})
    found = check_source("fish", source, quiet)
    assert found.sound
    assert len(found.digest) == 64
    assert found.sizes == {"590 x 445 L": 3, "10 x 10 RGB": 1}
    assert "590 x 445 L" in check_text(found)
    found = check_source("fish", source, quiet, strict=True)
    assert codes(found) == ["DATA-IMG"]
    assert (found.digest, found.class_names) == ("", source.names)
    assert found.parts[0].per_class == (1, 1, 1)
    assert "one byte is missing" in " ".join(check_text(found).split())


def test_strict_without_files_says_that_it_changes_nothing() -> None:
    found = check_source("rows", Rows({"train": [0, 1, 2], "test": [0]}), quiet, strict=True)
    assert found.sound
    assert "--strict" in found.notes[-1]


def test_the_table(tmp_path: Path) -> None:
    text = check_text(check(str(write_set(tmp_path / "set", arrays())), {}, quiet), width=100)
    for told in ("28 x 28, uint8", "0 to 255", "sha256", "train", "test", "Sound"):
        assert told in text
    many = Rows({"train": [*range(100), 7], "test": [5]}, classes=100, names=())
    text = check_text(check_source("rows", many, quiet), width=100)
    assert "most of a class    2 (7)" in text
    assert "odd" in text


def test_names_from_a_file_cannot_steer_a_terminal() -> None:
    names = ("\x1b[2Jcarp", "eel\r\n", "r\u202eay")
    text = check_text(check_source("rows", Rows({"train": [0, 1, 2], "test": [0]}, names=names), quiet))
    assert not {"\x1b", "\r", "\u202e"} & set(text)
