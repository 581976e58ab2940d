"""Vocabularies: learnt from a set, or those that others published."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import pre_tokenizers

from escala.data.base import Form
from escala.data.encode import Encoded, encoded
from escala.data.texts import Question
from escala.data.tokens import Vocabulary, learn, learnt_identity, published, read_learnt, read_published
from escala.terms.errors import EscalaError
from tests.support.told_texts import ToldTexts

PROSE = [f"The {noun} sat on the {place}.\n" for noun in ("cat", "dog", "ox") for place in ("mat", "log", "moor")]
TEXT = Form("text", "bytes", 300, 8)
QUESTIONS = Form("questions", "wordpiece", 200, 24)


def texts() -> ToldTexts:
    return ToldTexts("text", {"train": PROSE, "test": PROSE[:2]})


def asked(answer: str, context: str = "The cat sat on the far moor") -> Question:
    return Question("q", "who sat ?", context, ((answer, context.index(answer)),))


def rows_of(source: Encoded) -> Any:
    return np.concatenate(list(source.blocks("test")))


def make(source: ToldTexts, form: Form, cache: Path) -> Encoded:
    return encoded(source, form, cache, lambda _: None, {})


def vocabulary(form: Form) -> Vocabulary:
    return read_learnt(form, learn(form, PROSE), "told")


def refused(source: ToldTexts, form: Form, cache: Path) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        make(source, form, cache)
    return caught.value


def test_a_text_that_names_a_special_token_is_cut_like_any_other() -> None:
    assert not set(vocabulary(TEXT).numbers(["<end of text><begin><padding>"])[0].tolist()) & {0, 1, 2}
    pieces = vocabulary(QUESTIONS)
    assert not set(pieces.numbers(["[SEP] [CLS] [PAD]"])[0].tolist()) & {0, 2, 3}


@pytest.mark.parametrize("form", [TEXT, QUESTIONS], ids=["bytes", "wordpiece"])
def test_another_process_learns_the_same_vocabulary(form: Form) -> None:
    # More letters than the smaller vocabulary has room for, all equally rare.
    many = "".join(map(chr, range(0x4E00, 0x4E80)))
    sample = [f"{text} ñandú über naïve {number} {many}" for number, text in enumerate(PROSE)]
    program = (
        "import sys, json; from escala.data.base import Form; from escala.data.tokens import learn\n"
        "form, texts = json.loads(sys.argv[1]); sys.stdout.write(learn(Form(*form), texts))"
    )
    words = [form.kind, form.tokenizer, form.vocabulary, form.length, form.folder]
    run = subprocess.run(
        [sys.executable, "-c", program, json.dumps([words, sample])], capture_output=True, text=True, check=True
    )
    assert run.stdout == learn(form, sample)
    assert learnt_identity(form) == learnt_identity(Form(form.kind, form.tokenizer, form.vocabulary, 99))


def gpt2(folder: Path, end: int = 50_256) -> Path:
    """A vocabulary in the form and of the size of GPT-2's: 256 bytes, 50,000 pairs, the end of a text."""
    folder.mkdir(parents=True)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = [(left, right) for left in letters for right in letters][:50_000]
    names = [*letters, *(left + right for left, right in pairs)]
    numbers = {name: number for number, name in enumerate(names)} | {"<|endoftext|>": end}
    (folder / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in pairs)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_gpt2s_vocabulary_is_taken_where_it_is_here_and_fits(tmp_path: Path) -> None:
    gpt2(tmp_path / "sets" / "gpt2")
    environ = {"ESCALA_DATA": str(tmp_path / "sets")}
    form = Form("text", "bytes", 50_257, 8)
    found = encoded(texts(), form, tmp_path / "cache", lambda _: None, environ)
    assert 50_256 in np.concatenate(list(found.blocks("train")))
    assert found.facts().vocabulary == 50_257
    assert any("GPT-2's own" in note for note in found.facts().notes)
    assert published(Form("labelled text", "bytes", 50_257, 8), environ) is None
    assert published(Form("text", "bytes", 50_256, 8), environ) is None
    learnt = encoded(texts(), form, tmp_path / "cache", lambda _: None, {})
    assert learnt.folder != found.folder


def test_a_vocabulary_that_is_not_gpt2s_is_refused(tmp_path: Path) -> None:
    gpt2(tmp_path / "gpt2", end=50_300)
    found = published(Form("text", "bytes", 60_000, 8), {"ESCALA_DATA": str(tmp_path)})
    assert found is not None
    with pytest.raises(EscalaError) as caught:
        read_published(found)
    assert caught.value.code == "DATA-VOCAB"
    (tmp_path / "gpt2" / "vocab.json").write_text("[1, 2", encoding="utf-8")
    found = published(Form("text", "bytes", 60_000, 8), {"ESCALA_DATA": str(tmp_path)})
    assert found is not None
    with pytest.raises(EscalaError) as caught:
        read_published(found)
    assert caught.value.code == "DATA-VOCAB"


def bert(folder: Path, words: list[str]) -> Form:
    folder.mkdir()
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    return Form("questions", "wordpiece", 100, 24, str(folder))


def test_a_pretrained_networks_own_vocabulary_is_taken(tmp_path: Path) -> None:
    words = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "who", "ox", "the", "sat", "##s", "?"]
    form = bert(tmp_path / "tiny", words)
    source = ToldTexts("questions", {"train": [asked("Ox", "The Ox sats")], "test": [asked("Ox", "The Ox sats")]})
    found = make(source, form, tmp_path / "cache")
    assert rows_of(found)[0, 0, :10].tolist() == [3, 6, 9, 11, 4, 8, 7, 9, 10, 4]
    assert found.facts().vocabulary == 12
    (tmp_path / "tiny" / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    cased = make(source, form, tmp_path / "cache")
    assert rows_of(cased)[0, 0, 5:8].tolist() == [2, 2, 9]


def test_a_folder_without_a_fitting_vocabulary_is_refused(tmp_path: Path) -> None:
    source = ToldTexts("questions", {"train": [asked("cat")], "test": [asked("cat")]})
    assert refused(source, bert(tmp_path / "gpt", ["a", "b"]), tmp_path / "cache").code == "DATA-VOCAB"
    shifted = bert(tmp_path / "shifted", ["[UNK]", "[PAD]", "[CLS]", "[SEP]"])
    assert refused(source, shifted, tmp_path / "cache").code == "DATA-VOCAB"
    many = bert(tmp_path / "many", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *map(str, range(200))])
    error = refused(source, many, tmp_path / "cache")
    assert (error.code, error.where) == ("CFG-RANGE", "workload.options.vocabulary")
    (tmp_path / "none").mkdir()
    nothing = Form("questions", "wordpiece", 100, 24, str(tmp_path / "none"))
    assert refused(source, nothing, tmp_path / "cache").code == "MODEL-PATH"
