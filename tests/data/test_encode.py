"""Texts as rows of token numbers, and the cache that keeps them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders

from escala.data.base import Form, Part, Request, Source
from escala.data.cut import Tally, question_rows, text_rows
from escala.data.encode import encoded
from escala.data.plain_text import recognise
from escala.data.survey import survey
from escala.data.texts import Document, Labelled, Question
from escala.data.tokens import Vocabulary, learn, read_learnt
from escala.terms.errors import EscalaError
from tests.support.told_texts import ToldTexts

PROSE = [f"The {noun} sat on the {place}.\n" for noun in ("cat", "dog", "ox") for place in ("mat", "log", "moor")]
TEXT = Form("text", "bytes", 300, 8)
LABELLED = Form("labelled text", "bytes", 300, 8)
QUESTIONS = Form("questions", "wordpiece", 200, 24)


def texts() -> ToldTexts:
    return ToldTexts("text", {"train": PROSE, "test": PROSE[:2], "validation": PROSE[2:4]})


def reviews() -> ToldTexts:
    told = [Labelled(text, number % 2) for number, text in enumerate(PROSE)]
    return ToldTexts("labelled text", {"train": told, "test": [Labelled("ox", 1)]}, 2)


def whole(source: Source, part: Part) -> Any:
    return np.concatenate(list(source.blocks(part)))


def make(source: ToldTexts, form: Form, cache: Path, said: list[str] | None = None) -> Any:
    return encoded(source, form, cache, (said if said is not None else []).append, {})


def vocabulary(form: Form, sample: list[str] = PROSE) -> Vocabulary:
    return read_learnt(form, learn(form, sample), "told")


def refused(source: ToldTexts, form: Form, cache: Path) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        make(source, form, cache)
    return caught.value


def test_each_token_of_the_stream_is_predicted_once(tmp_path: Path) -> None:
    found = make(texts(), TEXT, tmp_path)
    words = vocabulary(TEXT)
    stream = [number for text in PROSE for number in [*words.numbers([text])[0].tolist(), 2]][:-1]
    rows, counts = whole(found, "train"), found.targets("train")
    assert rows.dtype == np.int32
    assert rows.shape == (len(counts), 9)
    assert counts.shape == (len(rows), 1)
    assert rows[0, 0] == stream[0]
    predicted = [number for row, (count,) in zip(rows, counts, strict=True) for number in row[1 : 1 + count].tolist()]
    assert predicted == stream[1:]
    assert all((row[1 + count :] == 0).all() for row, (count,) in zip(rows, counts, strict=True))
    assert (counts[:-1] == 8).all()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=20), max_size=12), st.integers(1, 9))
def test_packing_loses_no_token_of_any_text(documents: list[str], length: int) -> None:
    words, tally = BYTES, Tally()
    blocks = list(text_rows(documents, words, length, tally))
    stream = [number for text in documents for number in [2, *words.numbers([text])[0].tolist()]][1:]
    predicted = [
        number
        for block in blocks
        for row, (count,) in zip(block.inputs, block.targets, strict=True)
        for number in row[1 : 1 + count].tolist()
    ]
    assert predicted == stream[1:]
    assert decoders.ByteLevel().decode([words.tokenizer.id_to_token(one) for one in stream if one != 2]) == "".join(
        documents
    )
    assert tally.documents == len(documents)
    assert tally.bytes == len("".join(documents).encode())
    assert sum(int((block.inputs[:, 1:] == 0).sum()) for block in blocks) == tally.padding


BYTES = vocabulary(TEXT)


def test_labelled_texts_begin_with_one_are_cut_and_filled_with_zero(tmp_path: Path) -> None:
    found = make(reviews(), LABELLED, tmp_path)
    words = vocabulary(LABELLED)
    rows = whole(found, "train")
    assert rows.shape == (9, 8)
    assert (rows[:, 0] == 1).all()
    assert rows[0, 1:].tolist() == words.numbers([PROSE[0]])[0][:7].tolist()
    ox = words.numbers(["ox"])[0].tolist()
    assert whole(found, "test").tolist() == [[1, *ox, *[0] * (7 - len(ox))]]
    assert found.targets("train").tolist() == [0, 1, 0, 1, 0, 1, 0, 1, 0]
    facts = found.facts()
    assert (facts.shape, facts.dtype, facts.kind, facts.classes) == ((8,), "int32", "labelled text", 2)
    assert any("train: " in note and "lose their end" in note for note in facts.notes)
    both = np.concatenate([rows, whole(found, "test")])
    assert facts.padding == pytest.approx((both == 0).sum() / both.size)


def test_a_label_outside_the_classes_is_named_with_its_document(tmp_path: Path) -> None:
    source = ToldTexts(
        "labelled text", {"train": [Labelled("a", 0), Labelled("b", 2)], "test": [Labelled("a", 1)]}, 2
    )
    error = refused(source, LABELLED, tmp_path)
    assert error.code == "DATA-LABEL"
    assert "document 1 (from 0) is 2" in str(error)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("text-")]


CONTEXT = " ".join(f"{noun} sat" for noun in ("cat", "dog", "ox") * 8) + " on the far moor"


def asked(answer: str, context: str = CONTEXT, identity: str = "q") -> Question:
    return Question(identity, "who sat ?", context, ((answer, context.index(answer)), ("another", 0)))


def question_form() -> Vocabulary:
    return vocabulary(QUESTIONS, [CONTEXT, "who sat ?", *PROSE])


def test_a_question_is_followed_by_its_text_and_the_answer_is_found_there(tmp_path: Path) -> None:
    near = "The dog sat on the log. The ox sat."
    told: list[Document] = [asked("ox", near), Question("none", "who ?", near, ())]
    found = make(ToldTexts("questions", {"train": told, "test": told}), QUESTIONS, tmp_path)
    rows, targets = whole(found, "test"), found.targets("test")
    assert rows.shape == (2, 2, 24)
    lines = [json.loads(line) for line in b"".join(found.side("test")).splitlines()]
    assert [line["answers"] for line in lines] == [["ox", "another"], []]
    first, last, number = targets[0].tolist()
    offsets = lines[0]["offsets"]
    assert near[offsets[first][0] : offsets[last][1]] == "ox"
    assert number == 0
    assert targets[1].tolist() == [-1, -1, 1]
    ends = np.flatnonzero(rows[0, 0] == 3)
    assert rows[0, 0, 0] == 2
    assert rows[0, 1].tolist() == [0] * (ends[0] + 1) + [1] * (ends[1] - ends[0]) + [0] * (23 - ends[1])
    assert [offset == [0, 0] for offset in offsets] == [not ends[0] < place < ends[1] for place in range(ends[1] + 1)]
    assert (rows[0, 0, ends[1] + 1 :] == 0).all()


def test_questions_that_lose_their_end_are_counted(tmp_path: Path) -> None:
    near = "The dog sat on the log. The ox sat."
    long = Question("long", "who sat " * 20, near, (("ox", near.index("ox")),))
    source = ToldTexts("questions", {"train": [asked("ox", near), long], "test": [asked("ox", near)]})
    notes = make(source, QUESTIONS, tmp_path).facts().notes
    assert [note for note in notes if "lose their end" in note] == [
        "train: 1 of 2 questions are too long for their row and lose their end"
    ]


def test_training_rows_hold_the_answer_others_begin_where_the_text_does() -> None:
    words, far = question_form(), [asked("far moor"), asked("cat"), asked(CONTEXT)]
    train, others = Tally(), Tally()
    (rows,) = question_rows(far, words, 24, train, "train")
    lines = [json.loads(line) for line in rows.side.splitlines()]
    for number, answer in ((0, "far moor"), (1, "cat")):
        first, last, _ = rows.targets[number].tolist()
        begin, end = lines[number]["offsets"][first][0], lines[number]["offsets"][last][1]
        assert CONTEXT[begin:end] == answer
    assert rows.targets[:, 2].tolist() == [0, 1, 2]
    assert rows.targets[2, 0] == -1
    assert train.outside == 1
    (rows,) = question_rows(far, words, 24, others, "test")
    assert rows.targets[0].tolist() == [-1, -1, 0]
    assert rows.targets[1, 0] > 0
    assert others.outside == 2


@pytest.mark.parametrize("answer", ["cat", "dog", "x"])
def test_an_answer_begins_and_ends_with_its_own_tokens(answer: str) -> None:
    # No space between, so the token before ends where the answer begins.
    context = "(cat-dog)x."
    (rows,) = question_rows([asked(answer, context)], question_form(), 24, Tally(), "train")
    places = json.loads(rows.side)["offsets"]
    first, last, _ = rows.targets[0].tolist()
    assert context[places[first][0] : places[last][1]] == answer


WORDS = ["cat", "dog", "Élan", "中文", "x-y", "far"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_answer_in_a_training_row_is_read_back(data: st.DataObject) -> None:
    context = data.draw(st.lists(st.sampled_from(WORDS), min_size=3, max_size=40))
    first = data.draw(st.integers(0, len(context) - 1))
    last = data.draw(st.integers(first, min(first + 2, len(context) - 1)))
    begin = len(" ".join([*context[:first], ""])) if first else 0
    whole_text, answer = " ".join(context), " ".join(context[first : last + 1])
    assert whole_text[begin : begin + len(answer)] == answer
    (rows,) = question_rows([Question("q", "who ?", whole_text, ((answer, begin),))], PIECES, 32, Tally(), "train")
    line = json.loads(rows.side)
    start, end, _ = rows.targets[0].tolist()
    assert start > 0
    assert whole_text[line["offsets"][start][0] : line["offsets"][end][1]] == answer
    assert rows.inputs.max() < 200


PIECES = vocabulary(QUESTIONS, ["cat dog élan 中文 x-y far who ? moor"] * 3)


def test_the_second_time_nothing_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    first = make(texts(), TEXT, tmp_path, said)
    assert len(said) == 1
    monkeypatch.setattr(Vocabulary, "numbers", None)
    monkeypatch.setattr("escala.data.tokens.learn", None)
    source = texts()
    again = make(source, TEXT, tmp_path, said)
    assert source.read == []
    assert len(said) == 1
    assert again == first
    assert whole(again, "train").tolist() == whole(first, "train").tolist()


def test_a_damaged_entry_is_made_anew(tmp_path: Path) -> None:
    first = make(texts(), TEXT, tmp_path)
    rows = whole(first, "train").tolist()
    path = first.folder / "train-inputs.npy"
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)
    said: list[str] = []
    assert whole(make(texts(), TEXT, tmp_path, said), "train").tolist() == rows
    assert len(said) == 1


def test_texts_replaced_while_they_are_cut_are_refused_and_not_kept(tmp_path: Path) -> None:
    source = texts()

    def replace(_: str) -> None:
        source.told = dict.fromkeys(("train", "test", "validation"), PROSE[3:])

    with pytest.raises(EscalaError) as caught:
        encoded(source, TEXT, tmp_path, replace, {})
    assert caught.value.code == "DATA-CHANGED"
    # Otherwise the new content would be taken for the old one whenever that is asked for again.
    assert [path for path in tmp_path.iterdir() if path.name.startswith(("text-", "tokenizers-"))] == []
    assert any("train: 9 documents" in note for note in make(texts(), TEXT, tmp_path).facts().notes)


def test_texts_replaced_after_the_vocabulary_is_learnt_are_refused_too(tmp_path: Path) -> None:
    make(texts(), Form("text", "bytes", 300, 4), tmp_path)
    source = texts()

    def replace(_: str) -> None:
        source.told = dict.fromkeys(("train", "test", "validation"), PROSE[3:])

    with pytest.raises(EscalaError) as caught:
        encoded(source, TEXT, tmp_path, replace, {})
    assert caught.value.code == "DATA-CHANGED"
    assert len(list(tmp_path.glob("text-*"))) == 1


def test_a_name_that_is_no_text_does_not_stop_anything(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"odd\xff.txt")
    path.write_text("\n\n".join(PROSE * 3), encoding="utf-8")
    found = recognise(path)
    assert found is not None
    facts = encoded(found, TEXT, tmp_path / "cache", lambda _: None, {}).facts()
    assert any("learnt from odd" in note for note in facts.notes)


def test_other_texts_lengths_and_vocabularies_are_other_entries(tmp_path: Path) -> None:
    folders = {make(texts(), form, tmp_path).folder for form in (TEXT, Form("text", "bytes", 300, 9))}
    folders.add(make(texts(), Form("text", "bytes", 280, 8), tmp_path).folder)
    folders.add(make(ToldTexts("text", {"train": PROSE[1:], "test": PROSE}), TEXT, tmp_path).folder)
    assert len(folders) == 4
    # The vocabulary is learnt from the text, whatever the length of the rows.
    assert len(list(tmp_path.glob("tokenizers-*"))) == 3


def test_its_facts_say_which_vocabulary_and_how_much_text(tmp_path: Path) -> None:
    found = make(texts(), TEXT, tmp_path)
    facts = found.facts()
    assert facts.kind == "text"
    assert facts.vocabulary <= 300
    assert any("learnt from told" in note for note in facts.notes)
    size = len("".join(PROSE).encode())
    assert f"train: 9 documents, 9 lines, {size:,} bytes of UTF-8" in facts.notes
    description = survey(found, Request("told", form=TEXT)).description
    assert description.rows == {part: len(found.targets(part)) for part in ("train", "validation", "test")}


def test_too_little_text_and_forms_that_fit_nothing_are_refused(tmp_path: Path) -> None:
    empty = ToldTexts("text", {"train": PROSE, "test": []})
    assert refused(empty, TEXT, tmp_path).code == "DATA-EMPTY"
    assert refused(texts(), Form("text", "bytes", 258, 8), tmp_path).code == "CFG-RANGE"
    assert refused(texts(), Form("text", "bytes", 300, 0), tmp_path).code == "CFG-RANGE"
    assert refused(texts(), Form("questions", "wordpiece", 300, 7), tmp_path).code == "CFG-RANGE"
