from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest

from escala.data import reviews
from escala.data.generated import draws, stream
from escala.data.opinions import AGAINST, BAD_MILD, BAD_STRONG, GOOD_MILD, GOOD_STRONG, HATED, LOVED
from escala.data.reviews import BLOCK, CLEAR, LONGEST, SHORTEST, Reviews


def first(source: Reviews, rows: int, part: str = "train") -> list[tuple[str, int]]:
    return [(found.text, found.label) for found in itertools.islice(source.documents(part), rows)]


def test_a_text_depends_on_seed_part_and_number_alone() -> None:
    found = first(Reviews(), 150)
    assert first(Reviews(train=120), 500) == found[:120]
    assert first(Reviews(), 150) == found
    assert first(Reviews(), 150, "test") != found
    assert first(Reviews(seed=1), 150) != found


def test_labels_are_balanced_in_every_block() -> None:
    labels = [label for _, label in first(Reviews(), 3 * BLOCK)]
    assert [sum(labels[start : start + BLOCK]) for start in range(0, 3 * BLOCK, BLOCK)] == [BLOCK // 2] * 3
    assert labels[:BLOCK] != labels[BLOCK : 2 * BLOCK]


def test_lengths_vary_within_the_limits() -> None:
    words = np.array([len(text.split()) for text, _ in first(Reviews(), 2000)])
    assert words.min() >= SHORTEST
    assert words.max() <= LONGEST + 40
    assert words.min() < 35
    assert words.max() > 250


def test_known_texts() -> None:
    """A change of these needs a new REVISION."""
    assert reviews.REVISION == 1
    said = "\n".join(text for text, _ in first(Reviews(), 300, "test"))
    assert (
        hashlib.sha256(said.encode()).hexdigest()
        == "755c603c113992a8f249a0184fa7f594599f15239408d8ebd0f1e0cc5114f031"
    )


GOOD = {*GOOD_MILD, *GOOD_STRONG, *LOVED}
BAD = {*BAD_MILD, *BAD_STRONG, *HATED}


def side(clause: str) -> int:
    """What a clause says, read as a person would."""
    turned = (
        any(f" {word} " in clause.replace("could not stand", "hated") for word in AGAINST)
        or "cannot say" in clause
        or "nobody could" in clause.lower()
    )
    good = any(clause.endswith(f" {word}") or f" {word} the " in clause for word in GOOD)
    bad = any(clause.endswith(f" {word}") or f" {word} the " in clause for word in BAD)
    assert good != bad, clause
    return (1 if good else -1) * (-1 if turned else 1)


@pytest.mark.parametrize("wanted", [1, -1])
def test_claims_say_what_they_are_meant_to(wanted: int) -> None:
    draw = draws(stream(0, "train", 0))
    claims = [reviews._claim(draw, wanted) for _ in range(500)]
    assert {weight for _, weight in claims} == {1.0, 2.0, 4.0}
    assert {side(clause) for clause, _ in claims} == {wanted}


@pytest.mark.parametrize("wanted", [1, -1])
def test_what_is_conceded_weighs_less(wanted: int) -> None:
    """In a sentence with two sides the one that is not conceded is the label's side, whatever the order."""
    draw = draws(stream(0, "train", 0))
    seen = set[str]()
    for _ in range(500):
        sentence, _ = reviews._sentence(draw, wanted)
        for joint, place in ((", but ", 1), (", although ", 0), ("; still, ", 1)):
            if joint in sentence:
                seen.add(joint)
                clause = sentence.rstrip(".").split(joint)[place]
                assert side(clause) == wanted, sentence
    assert len(seen) == 3


def test_sums_are_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Followed from outside: the weights of all sentences, and 3 for a verdict, add up to the label's side."""
    added = list[float]()
    made = reviews._sentence

    def followed(draw: object, wanted: int) -> tuple[str, float]:
        sentence, weight = made(draw, wanted)  # type: ignore[arg-type]
        added.append(weight)
        return sentence, weight

    monkeypatch.setattr(reviews, "_sentence", followed)
    for label in (0, 1) * 50:
        added.clear()
        text = reviews._review(draws(stream(0, "train", len(added))), label)
        verdicts = sum(f"{verdict}." in text for verdict in (*reviews.VERDICTS_GOOD, *reviews.VERDICTS_BAD))
        assert (2 * label - 1) * sum(added) + 3 * verdicts >= CLEAR
