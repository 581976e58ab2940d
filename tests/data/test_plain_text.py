"""Running text in the layouts in which it is published."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.data import find, plain_text
from escala.data.base import PARTS
from escala.data.plain_text import FORTUNES, WORDNET, TextFiles, articles, paragraphs, recognise, recognise_wikitext
from escala.terms.errors import EscalaError

# As published: spaces around every line, an empty line first, sections with two signs or more.
TRAIN = (
    " \n = Robert Boulter = \n \n Robert Boulter is an English film , television and theatre actor . \n \n"
    " = = Career = = \n \n = 4 at the end of the line \n \n = Du Fu = \n \n Du Fu was a Chinese poet . \n"
)


@pytest.fixture(autouse=True)
def _no_debian(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(plain_text, "FORTUNES", tmp_path / "no-fortunes")
    monkeypatch.setattr(plain_text, "WORDNET", tmp_path / "no-wordnet")


def wikitext(folder: Path, ending: str = ".tokens") -> Path:
    folder.mkdir(parents=True)
    for stem, text in (
        ("train", TRAIN),
        ("valid", " \n = One = \n Text . \n"),
        ("test", " \n = Two = \n <unk> . \n"),
    ):
        (folder / f"wiki.{stem}{ending}").write_text(text, encoding="utf-8")
    return folder


def text_at(path: Path) -> TextFiles:
    found = find(str(path), {})
    assert isinstance(found, TextFiles)
    return found


def error_of(source: TextFiles, part: str = "train") -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        list(source.documents(part))  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize("ending", [".tokens", ".raw"])
def test_wikitext_has_three_parts_and_an_article_is_a_document(tmp_path: Path, ending: str) -> None:
    found = text_at(wikitext(tmp_path / "wiki", ending))
    assert found.parts() == ("train", "validation", "test")
    first, second = found.documents("train")
    assert first.startswith(" = Robert Boulter = \n")  # type: ignore[union-attr]
    assert " = = Career = = \n" in first  # type: ignore[operator]
    assert second == " = Du Fu = \n \n Du Fu was a Chinese poet . \n"
    assert list(found.documents("validation")) == [" = One = \n Text . \n"]
    assert list(found.documents("test")) == [" = Two = \n <unk> . \n"]
    assert found.facts().kind == "text"


def test_articles_lose_nothing_but_the_empty_lines_in_front() -> None:
    assert "".join(articles(TRAIN.splitlines(keepends=True))) == TRAIN.removeprefix(" \n")


def test_wikitext_is_found_by_name_and_told_without_its_folder(tmp_path: Path) -> None:
    wikitext(tmp_path / "wikitext-2", ".raw")
    found = find("wikitext-2", {"ESCALA_DATA": str(tmp_path)})
    assert found.facts().where == "$ESCALA_DATA/wikitext-2"
    with pytest.raises(EscalaError) as caught:
        find("wikitext-103", {"ESCALA_DATA": str(tmp_path)})
    assert caught.value.code == "DATA-PATH"


def test_a_missing_file_of_wikitext_is_named(tmp_path: Path) -> None:
    folder = wikitext(tmp_path / "wiki")
    (folder / "wiki.valid.tokens").unlink()
    with pytest.raises(EscalaError) as caught:
        recognise_wikitext(folder)
    assert caught.value.code == "DATA-PATH"
    assert "wiki.valid.tokens" in caught.value.what


def some(count: int) -> str:
    return "\n\n".join(f"Paragraph {number},\nin two lines." for number in range(count))


def test_of_any_file_every_twentieth_paragraph_is_for_the_test(tmp_path: Path) -> None:
    (tmp_path / "novel.txt").write_text(some(45), encoding="utf-8")
    found = text_at(tmp_path / "novel.txt")
    assert found.parts() == PARTS
    train, test = list(found.documents("train")), list(found.documents("test"))
    assert test == ["Paragraph 19,\nin two lines.\n", "Paragraph 39,\nin two lines.\n"]
    assert len(train) == 43
    assert not set(train) & set(test)
    assert any("20th" in note for note in found.facts().notes)


def test_files_of_a_folder_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for name, text in (("b.md", some(30)), ("a.txt", "First."), ("below/c.raw", "Last."), ("picture.png", "no text")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    train = list(text_at(tmp_path).documents("train"))
    assert (train[0], train[-1]) == ("First.", "Last.")
    assert "no text" not in train


def test_endings_may_be_upper_case_and_hidden_files_are_left_out(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for name, text in (("A.TXT", some(30)), (".b.txt", "Hidden."), (".git/c.txt", "Hidden, too.")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = text_at(tmp_path)
    assert found.files == {"train": (tmp_path / "A.TXT",)}
    assert recognise(tmp_path / ".git") is not None


def test_a_text_of_a_folder_that_cannot_be_read_is_not_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(some(30), encoding="utf-8")
    (tmp_path / "folder.txt").mkdir()
    assert len(list(text_at(tmp_path).documents("test"))) == 1
    (tmp_path / "b.txt").symlink_to("nowhere")
    error = error_of(text_at(tmp_path))
    assert (error.code, error.where) == ("DATA-PATH", str(tmp_path / "b.txt"))
    (tmp_path / "b.txt").unlink()
    os.mkfifo(tmp_path / "b.txt")
    error = error_of(text_at(tmp_path))
    assert (error.code, error.where) == ("DATA-PATH", str(tmp_path / "b.txt"))


def test_content_and_the_way_of_reading_decide_the_digest(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(some(30), encoding="utf-8")
    found = text_at(tmp_path / "a.txt")
    before = found.digest()
    assert TextFiles("other", "elsewhere", found.files, paragraphs).digest() == before
    assert TextFiles(found.name, found.told, found.files, plain_text.sayings).digest() != before
    (tmp_path / "a.txt").write_text(some(31), encoding="utf-8")
    assert found.digest() != before


@given(st.lists(st.text(st.sampled_from("ab é\n\r\t")), max_size=30))
def test_paragraphs_lose_nothing_but_white_space(pieces: list[str]) -> None:
    text = "".join(pieces)
    found = list(paragraphs(text.splitlines(keepends=True)))
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(paragraph.strip() for paragraph in found)


def test_a_file_without_empty_lines_is_cut_at_line_ends() -> None:
    sentences = [f"{number} " + "x" * 90 + "\n" for number in range(200)]
    found = list(paragraphs(iter(sentences)))
    assert "".join(found) == "".join(sentences)
    assert len(found) > 4
    assert all(4_000 < len(paragraph) < 4_200 for paragraph in found[:-1])


def test_old_line_ends_part_paragraphs(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_bytes(some(40).replace("\n", "\r").encode())
    found = text_at(tmp_path / "old.txt")
    assert list(found.documents("test")) == ["Paragraph 19,\rin two lines.\r", "Paragraph 39,\rin two lines."]


def test_too_little_text_for_a_test_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(some(19), encoding="utf-8")
    error = error_of(text_at(tmp_path / "a.txt"), "test")
    assert (error.code, error.expected) == ("DATA-EMPTY", "expected at least 20 paragraphs")


def test_damaged_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(some(30), encoding="utf-8")
    (tmp_path / "b.txt").write_bytes(b"fine\n\xe4\n")
    error = error_of(text_at(tmp_path))
    assert (error.code, error.where) == ("DATA-ENC", f"{tmp_path / 'b.txt'}, byte 5, line 2")
    (tmp_path / "b.txt").write_bytes(b"")
    assert error_of(text_at(tmp_path)).code == "DATA-EMPTY"
    (tmp_path / "b.txt").write_bytes(" \n\n".encode("utf-16"))
    assert error_of(text_at(tmp_path)).code == "DATA-ENC"


def test_what_is_no_text_is_left_to_others(tmp_path: Path) -> None:
    idx = tmp_path / "idx"
    idx.mkdir()
    (idx / "train-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03")
    (idx / "README.md").write_text("About.", encoding="utf-8")
    assert recognise(idx) is None
    (tmp_path / "packed").write_bytes(b"\x1f\x8b\x08\x00")
    assert recognise(tmp_path / "packed") is None
    (tmp_path / "empty").touch()
    assert recognise(tmp_path / "empty") is None
    (tmp_path / "LICENCE").write_text("é" * 5000, encoding="utf-8")
    assert recognise(tmp_path / "LICENCE") is not None
    (tmp_path / "odd").write_bytes(b"a" + "é".encode() * 5000)
    assert recognise(tmp_path / "odd") is not None


def fortunes(folder: Path, count: int = 40) -> Path:
    folder.mkdir()
    told = "\n%\n".join(f"Saying {number}.\n\t\t-- Somebody" for number in range(count)) + "\n%\n"
    (folder / "wisdom").write_text(told, encoding="utf-8")
    (folder / "wisdom.dat").write_bytes(b"\0\0\0\x02")
    (folder / "wisdom.u8").symlink_to("wisdom")
    (folder / "README").write_text("no index, so no sayings", encoding="utf-8")
    return folder


def test_sayings_stand_between_lines_with_a_per_cent_sign(tmp_path: Path) -> None:
    fortunes(tmp_path / "fortunes")
    found = find("fortunes", {"ESCALA_DATA": str(tmp_path)})
    assert isinstance(found, TextFiles)
    assert list(found.documents("test")) == [f"Saying {number}.\n\t\t-- Somebody\n" for number in (19, 39)]
    assert len(list(found.documents("train"))) == 38
    assert (found.facts().origin, found.facts().where) == ("real", "$ESCALA_DATA/fortunes")


def test_a_per_cent_sign_with_more_behind_it_parts_nothing() -> None:
    told = ["One,\n", "% of us\n", "%%\n", "%\r\n", "two.\n", "%\n"]
    assert list(plain_text.sayings(told)) == ["One,\n% of us\n%%\n", "two.\n"]


# The layout of wndb(5WN): a licence in lines that begin with two spaces, then a set of synonyms a line.
LICENCE = "  1 This software and database is being provided to you, the LICENSEE | by Princeton  \n"
LINE = '{:08d} 03 n 01 entity 0 003 ~ 00001930 n 0000 | that which is number {}; "it | exists"  \n'


def wordnet(folder: Path) -> Path:
    folder.mkdir()
    for name in ("adj", "adv", "noun", "verb"):
        lines = LICENCE + "".join(LINE.format(number, f"{name} {number}") for number in range(10))
        (folder / f"data.{name}").write_text(lines, encoding="utf-8")
    return folder


def test_definitions_are_what_follows_the_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_text, "WORDNET", wordnet(tmp_path / "debian"))
    found = find("wordnet", {})
    assert isinstance(found, TextFiles)
    assert list(found.documents("test")) == [
        f'that which is number {name} 9; "it | exists"' for name in ("adv", "verb")
    ]
    assert len(list(found.documents("train"))) == 38
    (tmp_path / "debian" / "data.adj").unlink()
    with pytest.raises(EscalaError) as caught:
        find("wordnet", {})
    assert caught.value.code == "DATA-PATH"


def installed() -> Iterator[tuple[str, Path]]:
    yield "fortunes", FORTUNES
    yield "wordnet", WORDNET


@pytest.mark.parametrize(("name", "folder"), list(installed()))
def test_debians_own_files_are_read_to_their_end(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not folder.is_dir():
        pytest.skip(f"Debian's package with {folder} is not installed")
    monkeypatch.setattr(plain_text, name.upper(), folder)
    found = find(name, {})
    assert isinstance(found, TextFiles)
    documents = {part: list(found.documents(part)) for part in found.parts()}
    assert len(documents["train"]) > 1_000
    assert len(documents["test"]) == sum(map(len, documents.values())) // 20
