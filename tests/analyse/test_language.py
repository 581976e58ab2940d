"""Languages: each has an entry for every text that a report can show, and none is spoken beyond its `with`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from string import Formatter

import pytest
import texts
from hypothesis import given
from hypothesis import strategies as st

from escala.analyse.language import ENGLISH, LANGUAGES, Words, language, marked, noun, say, speaking, words_of
from escala.analyse.wording import counted
from escala.terms.errors import EscalaError

OTHERS = [code for code in LANGUAGES if code != ENGLISH.code]
BACKWARDS = Words("x", {"Energy": "ygrenE", "{one} of {other}": "{other} fo {one}"}, {"run": ("nur", "snur")})


def _fields(text: str) -> set[str]:
    return {field for _, field, _, _ in Formatter().parse(text) if field is not None}


@pytest.mark.parametrize("code", OTHERS)
def test_every_text_and_noun_has_an_entry_and_no_entry_is_left_over(code: str) -> None:
    words = words_of(code)
    assert sorted(texts.texts() - words.texts.keys()) == [], "texts that the catalogue lacks"
    assert sorted(words.texts.keys() - texts.texts()) == [], "entries of texts that there are no longer"
    assert sorted(texts.nouns() - words.nouns.keys()) == [], "nouns that the catalogue lacks"
    assert sorted(words.nouns.keys() - texts.nouns()) == [], "entries of nouns that there are no longer"


@pytest.mark.parametrize("code", OTHERS)
def test_an_entry_has_the_parts_and_the_ends_of_its_text(code: str) -> None:
    for text, other in words_of(code).texts.items():
        assert _fields(other) == _fields(text), text
        assert [other[:1].isspace(), other[-1:].isspace()] == [text[:1].isspace(), text[-1:].isspace()], text
        assert other.endswith(".") == text.endswith("."), text
        assert other.strip(), text


def test_what_is_collected_is_what_is_marked() -> None:
    found = texts.texts()
    assert {"Nothing could be timed here.", "speed-up,\ntraining", "Time by phase", "Sort by {column}"} <= found
    assert {"few repeats", "out of memory", "devices", "rate", "speed-up, training"} <= found
    assert {"run", "damaged row", "sample"} <= texts.nouns()


def test_no_text_of_a_file_of_words_is_shown_untold_and_none_is_put_together_first() -> None:
    assert texts.unsaid() == []


def test_a_language_ends_with_its_block_and_no_other_thread_speaks_it() -> None:
    with speaking(BACKWARDS):
        assert (language(), say("Energy"), say("{one} of {other}", one=1, other=2)) == ("x", "ygrenE", "2 fo 1")
        assert (counted(1, "run"), counted(3, "run"), counted(3, "epoch")) == ("1 nur", "3 snur", "3 epochs")
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(say, "Energy").result() == "Energy"
        with speaking(ENGLISH):
            assert say("Energy") == "Energy"
        with pytest.raises(ValueError, match="stop"), speaking(ENGLISH):
            raise ValueError("stop")
        assert say("Energy") == "ygrenE"
    assert (language(), say("Energy")) == ("en", "Energy")


def test_what_is_not_in_a_catalogue_is_told_in_english() -> None:
    with speaking(BACKWARDS):
        assert say("Not in it: {name}", name="x") == "Not in it: x"
        assert (noun("index", plural=True, several="indices"), marked("Energy")) == ("indices", "Energy")


@given(st.text())
def test_no_name_is_taken_for_a_text_with_parts(name: str) -> None:
    assert say("{one} of {other}", one=name, other="{one}") == f"{name} of {{one}}"


def test_an_unknown_language_names_those_that_there_are() -> None:
    with pytest.raises(EscalaError, match=r"CFG-VALUE.*--lang.*no language 'fr'.*one of en, es"):
        words_of("fr")
