"""Reviews of films that do not exist, for or against, from a seeded grammar.

A review mixes remarks on the film, opinions for and against, and what others think. Its label is the sign of a sum:
an opinion counts 1, with a strong word 2, doubled where it is stressed; `not`, `hardly`, `anything but` and the
like turn it round; of two opinions joined by `but` or `although` the conceded one counts half; what others think
counts nothing; a verdict counts 3. The sum is at least 2 either way. Almost as many opinions are turned round as not,
so which words a review holds tells less than how they are put together.

Measured with seed 0 after 12,000 training texts, on 4,000 test texts: logistic regression on which words there are
gets 68 % right, on which words and pairs of neighbours 78 %; an embedding of 32 with two convolutions over 5 words
each (64 maps) gets 92 % after 4 epochs of AdamW, batch 32, lr 0.002. All 50,000 texts take 4 s; they have 121
words on average.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from escala.data.base import Part
from escala.data.generated import Draws, draws, pick, settings_digest, shuffled_classes, sizes, stream
from escala.data.names import person, town
from escala.data.opinions import (
    AGAINST,
    ASPECTS,
    BAD_MILD,
    BAD_STRONG,
    BITTERLY,
    CLOSINGS,
    DEEDS,
    GOOD_MILD,
    GOOD_STRONG,
    HATED,
    LOVED,
    MUCH,
    OTHERS,
    PEOPLE,
    PLACES,
    SEEN,
    VERDICTS_BAD,
    VERDICTS_GOOD,
)
from escala.data.texts import Labelled, TextFacts, TextSource

REVISION = 1
"""Raised whenever a change here or in the words changes a single byte of any review."""

BLOCK = 100
"""Reviews that share one stream of random numbers, half of them for; a change is a new revision."""
CLASS_NAMES = ("against", "for")

SHORTEST, LONGEST = 20, 360
"""Words after which a review may end, drawn with short ones more often; the last sentences may add 40."""
AGREEING = 0.62
"""Share of the opinions that go with the label."""
TURNED = 0.45
"""Share of the opinions that are said by denying the opposite."""
CLEAR = 2
"""How far from 0 the sum is at least."""


@dataclass(frozen=True)
class Reviews(TextSource):
    """`train` and `test` reviews drawn from `seed`."""

    name: str = "synthetic-imdb"
    train: int = 25_000
    test: int = 25_000
    seed: int = 0

    def facts(self) -> TextFacts:
        """The classes, and the settings that decide every byte."""
        where = f"reviews generator {REVISION}, {self.train} + {self.test} texts, seed {self.seed}"
        return TextFacts(self.name, "generated", where, "labelled text", len(CLASS_NAMES), CLASS_NAMES)

    def digest(self) -> str:
        """A sha256 in hex over the settings."""
        return settings_digest(self.facts().where)

    def documents(self, part: Part) -> Iterator[Labelled]:
        """The reviews; of every 100 half are for."""
        rows = self.train if part == "train" else self.test
        for number in range(-(-rows // BLOCK)):
            numbers = stream(self.seed, part, number)
            labels = shuffled_classes(numbers, BLOCK, len(CLASS_NAMES))
            draw = draws(numbers)
            for label in labels[: rows - number * BLOCK].tolist():
                yield Labelled(_review(draw, label), label)


def find(name: str, _environ: Mapping[str, str]) -> Reviews:
    """The generator: `synthetic-imdb`, or `synthetic-imdb:TRAIN+TEST` for so many texts.

    Raises EscalaError CFG-RANGE where that is not two positive numbers.
    """
    train, test = sizes(name, Reviews.train, Reviews.test, of="texts")
    return Reviews(name, train, test)


def _review(draw: Draws, label: int) -> str:
    """A review whose opinions add up to the label's side."""
    side = 2 * label - 1
    wanted = SHORTEST + (LONGEST - SHORTEST) * next(draw) * next(draw)
    sentences: list[str] = []
    words, total = 0, 0.0
    while words < wanted or side * total < CLEAR:
        # What has drifted to the other side is brought back, or a long review would never end.
        agreeing = AGREEING if words < wanted and side * total >= 0 else 0.9
        sentence, weight = _sentence(draw, side if next(draw) < agreeing else -side)
        sentences.append(sentence)
        words += len(sentence.split())
        total += weight
        if words >= wanted and side * total < CLEAR and next(draw) < 0.5:
            verdict = pick(draw, VERDICTS_GOOD if side > 0 else VERDICTS_BAD)
            sentences.append(f"{pick(draw, CLOSINGS)}, {verdict}.")
            words += len(sentences[-1].split())
            total += 3 * side
    return " ".join(sentences)


def _sentence(draw: Draws, side: int) -> tuple[str, float]:
    """A sentence and what it adds to the sum; an opinion is for with `side` 1, against with -1."""
    kind = next(draw)
    if kind < 0.28:
        return _remark(draw), 0
    if kind < 0.40:
        # As often for as against whatever the label: it says nothing.
        claim, _ = _claim(draw, pick(draw, (-1, 1)))
        return f"{pick(draw, OTHERS)} thought that {claim}.", 0
    if kind < 0.68:
        claim, weight = _claim(draw, side)
        if next(draw) < 0.3:
            return f"{_capital(pick(draw, BITTERLY))}, {claim}.", side * weight
        return f"{_capital(claim)}.", side * weight
    conceded, half = _claim(draw, -side)
    claim, weight = _claim(draw, side)
    added = side * (weight - half / 2)
    way = pick(draw, (0, 1, 2, 3))
    if way == 0:
        return f"{_capital(conceded)}, but {claim}.", added
    if way == 1:
        return f"Although {conceded}, {claim}.", added
    if way == 2:
        return f"{_capital(claim)}, although {conceded}.", added
    return f"It is true that {conceded}; still, {claim}.", added


def _claim(draw: Draws, side: int) -> tuple[str, float]:
    """A clause for or against, and its weight."""
    denied = next(draw) < TURNED
    said = -side if denied else side
    strong = next(draw) < 0.4
    weight = 2.0 if strong else 1.0
    if next(draw) < 0.25:
        verb = pick(draw, LOVED if said > 0 else HATED)
        start = pick(draw, ("I cannot say that I", "nobody could claim that I")) if denied else "I"
        return f"{start} {verb} the {pick(draw, ASPECTS)}", 1.0
    if said > 0:
        word = pick(draw, GOOD_STRONG if strong else GOOD_MILD)
    else:
        word = pick(draw, BAD_STRONG if strong else BAD_MILD)
    aspect, verb = pick(draw, ASPECTS), pick(draw, ("is", "was"))
    if next(draw) < 0.2:
        stress = pick(draw, MUCH)
        return f"the {aspect} {verb}, {stress}, {f'{pick(draw, AGAINST)} ' if denied else ''}{word}", 2 * weight
    return f"the {aspect} {verb} {f'{pick(draw, AGAINST)} ' if denied else ''}{word}", weight


def _remark(draw: Draws) -> str:
    """A sentence that says neither good nor bad."""
    way = pick(draw, (0, 1, 2, 3, 4, 5, 6))
    if way == 5:
        return f"{person(draw).full} plays {pick(draw, PEOPLE)}, {person(draw).full} {pick(draw, PEOPLE)}."
    if way == 6:
        return f"{person(draw).full}, known from the serial {town(draw)}, directed it."
    if way == 0:
        return f"It is about {pick(draw, PEOPLE)} from {pick(draw, PLACES)} who {pick(draw, DEEDS)}."
    if way == 1:
        return f"I saw it {pick(draw, SEEN)}."
    if way == 2:
        return f"In {pick(draw, PLACES)}, {pick(draw, PEOPLE)} {pick(draw, DEEDS)} and {pick(draw, DEEDS)}."
    if way == 3:
        year, minutes = 1930 + int(90 * next(draw)), 80 + int(100 * next(draw))
        return f"It was made in {year} and takes {minutes} minutes."
    return f"Then {pick(draw, PEOPLE)} {pick(draw, DEEDS)}, and we are back in {pick(draw, PLACES)}."


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
