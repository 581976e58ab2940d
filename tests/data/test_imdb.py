"""Film reviews in the tree of aclImdb."""

from __future__ import annotations

from pathlib import Path

import pytest

from escala.data import find
from escala.data.imdb import ReviewFolder
from escala.data.texts import Labelled
from escala.terms.errors import EscalaError


def tree(folder: Path) -> Path:
    for part in ("train", "test"):
        for label, grade in (("neg", 2), ("pos", 9)):
            (folder / part / label).mkdir(parents=True)
            for number in (10, 2, 1):
                text = f"{part} {label} {number}<br /><br />Élan."
                (folder / part / label / f"{number}_{grade}.txt").write_text(text, encoding="utf-8")
        (folder / part / "labeledBow.feat").write_text("9 0:9\n", encoding="utf-8")
    (folder / "train" / "unsup").mkdir()
    (folder / "train" / "unsup" / "0_0.txt").write_text("no class", encoding="utf-8")
    (folder / "imdb.vocab").write_text("the\nand\n", encoding="utf-8")
    return folder


def reviews(path: Path) -> ReviewFolder:
    found = find(str(path), {})
    assert isinstance(found, ReviewFolder)
    return found


def error_of(path: Path) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        list(reviews(path).documents("train"))
    return caught.value


def test_reviews_come_in_the_order_of_names_those_against_first(tmp_path: Path) -> None:
    found = reviews(tree(tmp_path / "films"))
    train = list(found.documents("train"))
    assert train == [
        Labelled(f"train {name} {number}<br /><br />Élan.", label)
        for label, name in enumerate(("neg", "pos"))
        for number in (10, 1, 2)
    ]
    assert len(list(found.documents("test"))) == 6
    facts = found.facts()
    assert (facts.kind, facts.classes, facts.class_names) == ("labelled text", 2, ("neg", "pos"))


def test_it_is_found_by_name_also_below_the_archives_own_folder(tmp_path: Path) -> None:
    tree(tmp_path / "imdb" / "aclImdb")
    assert find("imdb", {"ESCALA_DATA": str(tmp_path)}).facts().where == "$ESCALA_DATA/imdb/aclImdb"
    tree(tmp_path / "other" / "imdb")
    assert find("imdb", {"ESCALA_DATA": str(tmp_path / "other")}).facts().where == "$ESCALA_DATA/imdb"


def test_the_digest_is_of_the_reviews_and_their_classes(tmp_path: Path) -> None:
    found, same = reviews(tree(tmp_path / "a")), reviews(tree(tmp_path / "b"))
    assert found.digest() == same.digest()
    (tmp_path / "b" / "train" / "unsup" / "1_0.txt").write_text("left out", encoding="utf-8")
    assert found.digest() == same.digest()
    (tmp_path / "b" / "train" / "neg" / "3_1.txt").write_text("new", encoding="utf-8")
    assert found.digest() != same.digest()
    (tmp_path / "b" / "train" / "neg" / "3_1.txt").rename(tmp_path / "b" / "train" / "pos" / "0_1.txt")
    assert reviews(tmp_path / "b").digest() not in (found.digest(),)


def test_damaged_reviews_and_trees_are_refused_with_their_place(tmp_path: Path) -> None:
    folder = tree(tmp_path / "films")
    review = folder / "train" / "pos" / "2_9.txt"
    review.write_bytes(b"caf\xe9")
    error = error_of(folder)
    assert (error.code, error.where) == ("DATA-ENC", f"{review}, byte 3, line 1")
    review.write_bytes(b"")
    error = error_of(folder)
    assert (error.code, error.where) == ("DATA-EMPTY", str(review))
    for path in (folder / "train" / "pos").iterdir():
        path.unlink()
    error = error_of(folder)
    assert (error.code, error.where) == ("DATA-CLASS", str(folder / "train" / "pos"))
    (folder / "train" / "pos").rmdir()
    with pytest.raises(EscalaError) as caught:
        reviews(folder).facts()
    assert (caught.value.code, caught.value.where) == ("DATA-PATH", str(folder / "train" / "pos"))
