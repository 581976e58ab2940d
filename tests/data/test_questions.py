from __future__ import annotations

import hashlib
import itertools
import re
from collections import defaultdict

from escala.data import questions
from escala.data.check_text import wrong_with
from escala.data.questions import QUESTIONS, Questions
from escala.data.texts import Question


def first(source: Questions, rows: int, part: str = "train") -> list[Question]:
    return list(itertools.islice(source.documents(part), rows))


ASKED = first(Questions(), 2000)


def test_a_question_depends_on_seed_part_and_number_alone() -> None:
    assert first(Questions(train=23), 500) == ASKED[:23]
    assert [found.context for found in first(Questions(), 20, "test")] != [found.context for found in ASKED[:20]]
    assert [found.context for found in first(Questions(seed=1), 20)] != [found.context for found in ASKED[:20]]


def test_known_texts() -> None:
    """A change of these needs a new REVISION."""
    assert questions.REVISION == 1
    said = "\n".join(f"{found.question} {found.answers} {found.context}" for found in first(Questions(), 100, "test"))
    assert (
        hashlib.sha256(said.encode()).hexdigest()
        == "dc587920c264b3cb0f83684ccd649688bb280956beba12db9a2c3d79b483aeb0"
    )


def test_answers_stand_where_they_should() -> None:
    seen = set[str]()
    for found in ASKED:
        assert list(wrong_with(found, seen)) == []
        seen.add(found.id)
        ((text, start),) = found.answers
        assert found.context[start : start + len(text)] == text
        # A whole word or name, not a piece of one.
        assert not found.context[start - 1 : start].isalnum()
        assert not found.context[start + len(text) : start + len(text) + 1].isalnum()
    assert len(seen) == len(ASKED)


def test_parts_share_no_id() -> None:
    assert not {found.id for found in ASKED} & {found.id for found in first(Questions(), 1000, "test")}


def test_several_questions_go_with_a_text() -> None:
    by_text = defaultdict[str, list[Question]](list)
    for found in ASKED:
        by_text[found.context].append(found)
    assert {len(asked) for asked in by_text.values()} == {QUESTIONS}
    for asked in by_text.values():
        assert len({(found.question, found.answers) for found in asked}) == QUESTIONS


def test_each_answer_has_others_of_its_kind_beside_it() -> None:
    for found in ASKED:
        if found.answers[0][0].isdigit():
            assert len(re.findall(r"\b1\d{3}\b", found.context)) >= 1
    years = [len(re.findall(r"\b1\d{3}\b", found.context)) for found in ASKED if found.answers[0][0].isdigit()]
    assert sum(years) / len(years) > 2.5


def test_questions_by_name_are_answered_of_whom_the_text_speaks() -> None:
    """The last full name at the head of a sentence before the answer is the one that was asked about."""
    followed = 0
    for found in ASKED:
        ((_, start),) = found.answers
        named = re.search(r"(?:was|of|did|does|with|hear|taught) ([A-Z]\w+ [A-Z]\w+)", found.question)
        if named is None:
            continue
        heads = r"(?:^|\. )(?:(?:In the evening|The birth of) )?([A-Z]\w+ [A-Z]\w+)"
        end = found.context.find(".", start)
        assert re.findall(heads, found.context[:end])[-1] == named[1], found
        followed += 1
    assert followed > 500


def test_trades_are_each_listed_once() -> None:
    assert len(set(questions._TRADES)) == len(questions._TRADES)


def test_contexts_fit_a_row() -> None:
    words = [len(found.context.split()) for found in ASKED]
    assert max(words) < 260
    assert min(words) > 30
