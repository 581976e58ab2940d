"""Questions in SQuAD's JSON, whole and damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from escala.data import find
from escala.data.squad import SquadFiles
from escala.data.texts import Question
from escala.terms.errors import EscalaError

CONTEXT = "Architecturally, the school has a Catholic character. Atop the Main Building's gold dome is a statue."


def asked(identity: str, answer: str = "gold dome", start: int | None = None, **more: Any) -> dict[str, Any]:
    found = CONTEXT.find(answer) if start is None else start
    return {
        "answers": [{"answer_start": found, "text": answer}],
        "question": f"What about {identity}?",
        "id": identity,
        **more,
    }


def told(*questions: dict[str, Any], paragraphs: int = 1) -> dict[str, Any]:
    cut = [{"context": CONTEXT, "qas": list(questions) if not number else []} for number in range(paragraphs)]
    return {"data": [{"title": "University_of_Notre_Dame", "paragraphs": cut}], "version": "1.1"}


def folder_of(folder: Path, train: Any, dev: Any = None, version: str = "1.1") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("train", train), ("dev", dev or told(asked("dev")))):
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name}-v{version}.json").write_text(text, encoding="utf-8")
    return folder


def questions(path: Path) -> SquadFiles:
    found = find(str(path), {})
    assert isinstance(found, SquadFiles)
    return found


def error_of(path: Path, train: Any) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        list(questions(folder_of(path, train)).documents("train"))
    return caught.value


def test_questions_come_with_their_text_and_answers(tmp_path: Path) -> None:
    found = questions(folder_of(tmp_path / "set", told(asked("a"), asked("b", "a Catholic character"))))
    first, second = found.documents("train")
    assert first == Question("a", "What about a?", CONTEXT, (("gold dome", CONTEXT.index("gold dome")),))
    assert second.answers[0][0] == "a Catholic character"  # type: ignore[union-attr]
    assert [question.id for question in found.documents("test")] == ["dev"]  # type: ignore[union-attr]
    assert found.facts().kind == "questions"


def test_it_is_found_by_name_and_by_either_of_its_files(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "squad", told(asked("a")))
    assert find("squad", {"ESCALA_DATA": str(tmp_path)}).facts().where == "$ESCALA_DATA/squad"
    whole = questions(folder)
    assert questions(folder / "train-v1.1.json").files == whole.files
    assert questions(folder / "dev-v1.1.json").digest() == whole.digest()
    (folder / "dev-v1.1.json").unlink()
    with pytest.raises(EscalaError) as caught:
        find("squad", {"ESCALA_DATA": str(tmp_path)})
    assert caught.value.code == "DATA-PATH"
    assert "dev-v1.1.json" in caught.value.what


def test_one_file_is_split_by_paragraphs(tmp_path: Path) -> None:
    paragraphs = [{"context": CONTEXT, "qas": [asked(f"{number}-{n}") for n in range(2)]} for number in range(21)]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), encoding="utf-8")
    found = questions(path)
    assert [question.id for question in found.documents("test")] == ["19-0", "19-1"]  # type: ignore[union-attr]
    assert len(list(found.documents("train"))) == 40
    assert "20th" in found.facts().notes[0]
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs[:19]}]}), encoding="utf-8")
    with pytest.raises(EscalaError) as caught:
        list(found.documents("test"))
    assert caught.value.code == "DATA-EMPTY"


def test_everything_wrong_with_questions_is_told_at_once(tmp_path: Path) -> None:
    error = error_of(
        tmp_path / "set",
        told(
            asked("minus", start=-1),
            asked("past", start=len(CONTEXT)),
            asked("moved", start=3),
            asked("cut", CONTEXT[-3:] + "x", start=len(CONTEXT) - 3),
            asked("empty", ""),
            asked("both", is_impossible=True),
            {**asked("none"), "answers": []},
            asked("twice"),
            asked("twice"),
            *(asked(f"far{number}", start=1000) for number in range(9)),
            asked("good"),
        ),
    )
    assert error.code == "DATA-QA"
    assert error.exit == 3
    for words in (
        "begins before the text (1): minus",
        "begins behind the text (10): past, far0, far1, far2, far3 and more",
        "does not stand where it should (2): moved, cut",
        "an empty answer (1): empty",
        'no answer and no mark "is_impossible" (1): none',
        'an answer and the mark "is_impossible" (1): both',
        "the same id twice (1): twice",
    ):
        assert words in error.what
    assert "good" not in error.what


def test_a_question_may_lack_an_answer_only_where_it_says_so(tmp_path: Path) -> None:
    impossible = {**asked("none"), "answers": [], "is_impossible": True, "plausible_answers": [{"text": "no"}]}
    folder = folder_of(tmp_path / "set", told(impossible, asked("a", is_impossible=False)), version="2.0")
    first, second = questions(folder).documents("train")
    assert (first.answers, len(second.answers)) == ((), 1)  # type: ignore[union-attr]


def test_offsets_are_characters_not_bytes_or_halves(tmp_path: Path) -> None:
    context = "\U0001f600 é 中文 the end"
    content = told(asked("a", "the", start=context.index("the")))
    content["data"][0]["paragraphs"][0]["context"] = context
    (only,) = questions(folder_of(tmp_path / "set", content)).documents("train")
    assert only.context == context  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        (lambda qa: qa.pop("question"), "$.data[0].paragraphs[0].qas[0]"),
        (lambda qa: qa.update(id=7), "$.data[0].paragraphs[0].qas[0].id"),
        (lambda qa: qa["answers"][0].update(answer_start="5"), "qas[0].answers[0].answer_start"),
        (lambda qa: qa["answers"][0].pop("text"), "qas[0].answers[0]"),
        (lambda qa: qa.update(answers=None), "qas[0].answers"),
    ],
)
def test_another_form_is_refused_with_its_place(tmp_path: Path, damage: Any, place: str) -> None:
    question = asked("a")
    damage(question)
    error = error_of(tmp_path / "set", told(question))
    assert error.code == "DATA-QA"
    assert place in error.what


def test_what_is_no_json_is_refused_with_its_place(tmp_path: Path) -> None:
    whole = json.dumps(told(asked("a")))
    assert error_of(tmp_path / "cut", whole[:200]).code == "DATA-QA"
    error = error_of(tmp_path / "word", whole.replace('"id"', "id"))
    assert error.code == "DATA-QA"
    assert "byte" in error.what
    assert (
        error_of(tmp_path / "half", '{"data": [{"paragraphs": [{"context": "\\ud800", "qas": []}]}]}').code
        == "DATA-QA"
    )
    assert error_of(tmp_path / "none", "\n").code == "DATA-EMPTY"
    (folder_of(tmp_path / "bytes", whole) / "train-v1.1.json").write_bytes(whole[:30].encode() + b"\xe4")
    with pytest.raises(EscalaError) as caught:
        list(questions(tmp_path / "bytes").documents("train"))
    assert caught.value.code == "DATA-ENC"
    assert ", byte 30, line 1" in caught.value.where


def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    # In a key that is not looked at, so only the depth is wrong.
    deep = '{"version": ' + "[" * 100_000 + "]" * 100_000 + ', "data": []}'
    error = error_of(tmp_path / "set", deep)
    assert error.code == "DATA-QA"
    assert "deep" in error.what


def test_an_error_shows_ids_so_that_a_terminal_can_print_them(tmp_path: Path) -> None:
    error = error_of(tmp_path / "set", told(asked("\x1b[2J\u202e" + "x" * 10_000, start=-1)))
    assert error.code == "DATA-QA"
    assert error.what.isprintable()
    assert len(error.what) < 200


def test_of_two_versions_the_whole_one_is_taken(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "set", told(asked("new")), version="2.0")
    (folder / "train-v1.1.json").write_text(json.dumps(told(asked("old"))), encoding="utf-8")
    assert [question.id for question in questions(folder).documents("train")] == ["new"]  # type: ignore[union-attr]


def test_a_mark_of_utf8_in_front_is_no_json_and_left_out(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "set", "\ufeff" + json.dumps(told(asked("a"))))
    assert len(list(questions(folder).documents("train"))) == 1


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda one: (
            st.lists(one, max_size=3)
            | st.dictionaries(st.sampled_from(["data", "paragraphs", "qas", "context", "answers"]), one, max_size=3)
        ),
    )
)
def test_any_other_json_is_an_error_in_words(tmp_path: Path, content: Any) -> None:
    assert error_of(tmp_path, json.dumps(content)).code in ("DATA-QA", "DATA-EMPTY")
