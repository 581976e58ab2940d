"""Articles about people who do not exist, from a seeded grammar, for a language model: their structure reaches far.

An article keeps to one or two topics, each paragraph mostly to the topic of the one before. Its people have names,
trades, towns and each one treasured thing, which come back as they were, near and far; `he` and `she` are whom the
sentence before was about. Verbs agree with their subject across what stands between. Quotations and brackets run over
sentences and are closed, and quotations name their speaker when they end. Years only rise. The last paragraph lists
the people in the order in which they came up. The form is that of WikiText: a title between equals signs, then a
paragraph a line.

Measured with seed 0 on the test articles, over words, signs and line ends, by counts in all training articles: a
perplexity of 218 with single words, of 24.1 with pairs and of 15.9 with triples (Witten-Bell); what reaches further
than two words is not in these. The default training part has 2 million words, of 2,400 kinds, and takes 3 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from escala.data.base import Part
from escala.data.generated import Draws, draws, pick, settings_digest, sizes, stream
from escala.data.names import Person, person, town
from escala.data.texts import TextFacts, TextSource
from escala.data.topics import TOPICS

REVISION = 1
"""Raised whenever a change here, in the names or in the topics changes a single byte of any text."""

PARAGRAPHS = (3, 6)
SENTENCES = (4, 9)
"""Of a paragraph."""
PEOPLE = (2, 5)
STAYS = 0.8
"""Share of the paragraphs that keep the topic of the one before."""
CAME_UP_BEFORE = 0.75
"""Share of the sentences about people that are about somebody already named."""


@dataclass(frozen=True)
class Prose(TextSource):
    """`train` and `test` articles drawn from `seed`, and as many for validation as for the test."""

    name: str = "synthetic-wikitext"
    train: int = 5_400
    test: int = 250
    seed: int = 0

    def facts(self) -> TextFacts:
        """The settings that decide every byte."""
        where = f"prose generator {REVISION}, {self.train} + {self.test} + {self.test} articles, seed {self.seed}"
        return TextFacts(self.name, "generated", where, "text")

    def digest(self) -> str:
        """A sha256 in hex over the settings."""
        return settings_digest(self.facts().where)

    def documents(self, part: Part) -> Iterator[str]:
        """The articles."""
        for number in range(self.train if part == "train" else self.test):
            yield _article(draws(stream(self.seed, part, number)))

    def parts(self) -> tuple[Part, ...]:
        return ("train", "validation", "test")


def find(name: str, _environ: Mapping[str, str]) -> Prose:
    """The generator: `synthetic-wikitext`, or `synthetic-wikitext:TRAIN+TEST` for so many articles.

    Raises EscalaError CFG-RANGE where that is not two positive numbers.
    """
    train, test = sizes(name, Prose.train, Prose.test, of="articles")
    return Prose(name, train, test)


@dataclass(frozen=True)
class _Known:
    """What an article says of somebody whenever it says it."""

    who: Person
    trade: str
    home: str
    treasure: str


class _Story:
    """An article while it is written: who came up, who was spoken of last, and the year."""

    def __init__(self, draw: Draws) -> None:
        self.draw = draw
        self.topics = (pick(draw, TOPICS), pick(draw, TOPICS))
        self.topic = self.topics[0]
        self.year = 1700 + int(200 * next(draw))
        self.waiting = [self._known() for _ in range(_count(draw, PEOPLE))]
        self.met: list[_Known] = []
        self.last: _Known | None = None

    def _known(self) -> _Known:
        topic = pick(self.draw, self.topics)
        treasure = f"{pick(self.draw, topic.qualities)} {pick(self.draw, topic.things)}"
        return _Known(person(self.draw), pick(self.draw, topic.trades), town(self.draw), treasure)

    def somebody(self) -> tuple[_Known, str]:
        """Whom the next sentence is about, and how it begins: in full the first time, then shorter."""
        if self.waiting and (not self.met or next(self.draw) > CAME_UP_BEFORE):
            known = self.waiting.pop()
            self.met.append(known)
            name = f"{known.who.full}, {_a(known.trade)} from {known.home},"
        else:
            known = self.last if self.last and next(self.draw) < 0.45 else pick(self.draw, self.met)
            if known is self.last:
                name = known.who.pronoun
            else:
                name = pick(self.draw, (known.who.last, known.who.full, f"the {known.trade} from {known.home}"))
        self.last = known
        return known, name

    def things(self) -> tuple[str, bool]:
        """A thing of the topic, or several, with an article; and whether there are several."""
        many = next(self.draw) < 0.5
        return f"the {pick(self.draw, self.topic.things)}{'s' if many else ''}", many


def _article(draw: Draws) -> str:
    story = _Story(draw)
    paragraphs = []
    for _ in range(_count(draw, PARAGRAPHS)):
        if next(draw) > STAYS:
            story.topic = pick(draw, story.topics)
        # A new paragraph begins with a name, not with a pronoun.
        story.last = None
        paragraphs.append(" ".join(_sentence(story) for _ in range(_count(draw, SENTENCES))))
    names = [known.who.full for known in story.met]
    if names:
        listed = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
        paragraphs.append(f"So much is known of {listed}.")
    title = f" = {_capital(story.topics[0].name)} in {pick(draw, story.met).home if story.met else town(draw)} = "
    return "\n\n".join((title, *paragraphs)) + "\n\n"


def _sentence(story: _Story) -> str:
    kind = next(story.draw)
    if kind < 0.38:
        return f"{_deed(story)}."
    if kind < 0.60:
        return f"{_state(story)}."
    if kind < 0.72 and story.met:
        return _reminder(story)
    if kind < 0.86:
        return _quotation(story)
    return _bracket(story)


def _deed(story: _Story) -> str:
    """Somebody did something, now and then in a later year."""
    draw = story.draw
    when = ""
    if next(draw) < 0.35:
        story.year += 1 + int(6 * next(draw))
        when = f"in {story.year} "
    known, name = story.somebody()
    things, _ = story.things()
    deed = pick(draw, story.topic.deeds)
    end = pick(draw, (f" at {pick(draw, story.topic.places)}", f" with the {known.treasure}", "", ""))
    return _capital(f"{when}{name} {deed}ed {things}{end}")


def _state(story: _Story) -> str:
    """What things are like: the verb agrees with the first of them, not with the nearest."""
    draw = story.draw
    things, many = story.things()
    between = [f"of {pick(draw, story.topic.places)}", f"next to {story.things()[0]}"]
    if story.met:
        between.append(f"that {pick(draw, story.met).who.last} {pick(draw, story.topic.deeds)}ed")
    story.last = None
    put_between = " ".join(pick(draw, between) for _ in range(_count(draw, (1, 2))))
    return _capital(f"{things} {put_between} {'were' if many else 'was'} {pick(draw, story.topic.qualities)}")


def _reminder(story: _Story) -> str:
    """What was said, or could have been, of somebody before: always the same."""
    known = pick(story.draw, story.met)
    story.last = known
    way = pick(story.draw, (0, 1, 2))
    if way == 0:
        return f"The {known.treasure} belonged to {known.who.full}."
    if way == 1:
        return f"{known.who.last} was still {_a(known.trade)} in {known.home}."
    return f"In {known.home}, everybody knew the {known.treasure} of {known.who.full}."


def _quotation(story: _Story) -> str:
    """Some sentences between quotation marks, and at the end who said them."""
    said = ". ".join(_state(story) for _ in range(_count(story.draw, (1, 3))))
    _, name = story.somebody()
    return f"“{said},” said {name.removesuffix(',')}."


def _bracket(story: _Story) -> str:
    """A sentence with another in brackets, in which there may be a third in square ones."""
    draw = story.draw
    outer, inner = _deed(story), _state(story)
    if next(draw) < 0.4:
        inner = f"{inner} [{_deed(story)}]"
    return f"{outer} ({inner})."


def _count(draw: Draws, limits: tuple[int, int]) -> int:
    return limits[0] + int((limits[1] - limits[0] + 1) * next(draw))


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
