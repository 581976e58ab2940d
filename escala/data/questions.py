"""Questions on short texts about people who do not exist, with answers that stand in the text, from a seeded grammar.

A text tells of three to five people, some of one family, as a register would: place and year of birth, trade, pet,
instrument, and who taught them. Everybody has most of these, so that for each answer there stand several
of its kind beside it. Who is meant is often said by a pronoun, sentences are worded in several ways and in any order,
and questions in other words than the text; some go backwards, from the fact to the person, or over two facts. Five
questions go with a text. The form is SQuAD's: an answer is a piece of the text and where it begins.

Measured with seed 0 on the test questions: the sentence that shares most words with the question, and in it the
last year, name, town or noun as the question word asks for, gives an exact match of 22 % and an F1 of 23 %; six
convolutions of 64 maps that are told which words stand in the question, too, and know 2,096 words give an exact
match of 89 to 91 % after 3 to 6 epochs of AdamW, batch 64, lr 0.002. All 9,000 questions take 1 s; their texts
have 139 words on average.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from escala.data.base import Part
from escala.data.generated import Draws, T, draws, pick, settings_digest, sizes, stream
from escala.data.names import Person, person, surname, town
from escala.data.texts import Question, TextFacts, TextSource
from escala.data.topics import TOPICS

REVISION = 1
"""Raised whenever a change here, in the names or in the topics changes a single byte of any text."""

QUESTIONS = 5
"""With each text, as far as rows are asked for."""
PEOPLE = (3, 5)
SAME_FAMILY = 0.35
"""Share of the people who bear the name of one before them."""
TOLD = 0.85
"""Share of the facts that the text tells."""
PRONOUN = 0.6
"""Share of the sentences, after the first on somebody, that begin with `he` or `she`."""

_PETS = (
    "badger", "camel", "canary", "cat", "crow", "dog", "donkey", "falcon", "ferret", "goat", "goose", "hedgehog",
    "horse", "lizard", "monkey", "owl", "parrot", "pig", "pigeon", "rabbit", "raven", "snake", "tortoise", "turkey",
)  # fmt: skip
_INSTRUMENTS = (
    "accordion", "banjo", "bassoon", "bugle", "cello", "clarinet", "cornet", "drum", "fiddle", "flute", "guitar",
    "harp", "horn", "lute", "mandolin", "oboe", "organ", "piano", "recorder", "trombone", "trumpet", "tuba",
    "viola", "zither",
)  # fmt: skip
_TRADES = tuple(trade for topic in TOPICS for trade in topic.trades)

_SAYINGS: dict[str, tuple[str, ...]] = {
    "place": ("{} was born in {}", "{} came into the world in {}", "{} grew up in {}, the town where it all began"),
    "year": ("{} was born in {}", "the birth of {} fell in the year {}", "{} has been alive since {}"),
    "trade": ("{} worked as a skilled {}", "{} earned a living as {a}", "{} made money as {a}"),
    "pet": ("{} kept a tame {}", "{} shared a house with {a}", "{} was never seen without a small {}"),
    "instrument": ("{} played the {}", "{} was a master of the {}", "in the evening {} practised on the {}"),
    "teacher": ("{} learnt everything from {}", "{} was taught by {}", "{} had lessons from {}"),
}
"""How a text tells a fact: who, then what; `{a}` is what with `a` or `an` before it."""
_ASKED: dict[str, tuple[str, ...]] = {
    "place": ("Where was {} born?", "What is the home town of {}?", "From which town does {} come?"),
    "year": ("When was {} born?", "In which year did the life of {} begin?", "What is the year of birth of {}?"),
    "trade": ("What was the profession of {}?", "What did {} do for work?", "What was the job of {}?"),
    "pet": ("Which animal lived with {}?", "What kind of animal did {} own?", "What was the pet of {}?"),
    "instrument": ("Which instrument did {} play?", "On what did {} make music?", "What could one hear {} play?"),
    "teacher": ("Who taught {}?", "Whose pupil was {}?", "Who was the teacher of {}?"),
}
_ASKED_BACK: dict[str, tuple[str, ...]] = {
    "place": ("Who was born in {}?", "Who came from {}?"),
    "trade": ("Who was the {}?", "Who had the job of {}?"),
    "pet": ("Who owned the {}?", "To whom did the {} belong?"),
    "instrument": ("Who played the {}?", "Who could be heard on the {}?"),
}


@dataclass(frozen=True)
class Questions(TextSource):
    """`train` and `test` questions drawn from `seed`."""

    name: str = "synthetic-squad"
    train: int = 8_000
    test: int = 1_000
    seed: int = 0

    def facts(self) -> TextFacts:
        """The settings that decide every byte."""
        where = f"questions generator {REVISION}, {self.train} + {self.test} questions, seed {self.seed}"
        return TextFacts(self.name, "generated", where, "questions")

    def digest(self) -> str:
        """A sha256 in hex over the settings."""
        return settings_digest(self.facts().where)

    def documents(self, part: Part) -> Iterator[Question]:
        """The questions, five on a text one after another; one accepted answer each."""
        rows = self.train if part == "train" else self.test
        for number in range(-(-rows // QUESTIONS)):
            draw = draws(stream(self.seed, part, number))
            asked = _asked(draw, f"{part}-{self.seed}-{number}")
            yield from asked[: rows - number * QUESTIONS]


def find(name: str, _environ: Mapping[str, str]) -> Questions:
    """The generator: `synthetic-squad`, or `synthetic-squad:TRAIN+TEST` for so many questions.

    Raises EscalaError CFG-RANGE where that is not two positive numbers.
    """
    train, test = sizes(name, Questions.train, Questions.test, of="questions")
    return Questions(name, train, test)


@dataclass(frozen=True)
class _Fact:
    """What the text tells: of whom, of which kind, what, where that begins, and where the full name stood last."""

    who: Person
    kind: str
    what: str
    at: int
    named_at: int


def _asked(draw: Draws, identity: str) -> list[Question]:
    context, facts = _text(draw, _people(draw))
    found: list[Question] = []
    asked = set[tuple[str, tuple[str, int]]]()
    while len(found) < QUESTIONS:
        question, answer = _question(draw, facts)
        if (question, answer) not in asked:
            asked.add((question, answer))
            found.append(Question(f"{identity}-{len(found)}", question, context, (answer,)))
    return found


def _people(draw: Draws) -> list[Person]:
    """Some people, no two with one full name."""
    people: list[Person] = []
    while len(people) < PEOPLE[0] or (len(people) < PEOPLE[1] and next(draw) < 0.5):
        family = pick(draw, people).last if people and next(draw) < SAME_FAMILY else surname(draw)
        somebody = person(draw, family)
        if all(somebody.full != known.full for known in people):
            people.append(somebody)
    return people


def _text(draw: Draws, people: list[Person]) -> tuple[str, list[_Fact]]:
    """A text about these people, and the facts that it tells."""
    facts: list[_Fact] = []
    kinds = _shuffled(draw, ("trade", "pet", "instrument", "place"))
    # No trade, pet or instrument twice in a text: who is asked for by it must be one only.
    stock = {"trade": _shuffled(draw, _TRADES), "pet": _shuffled(draw, _PETS)}
    stock["instrument"] = _shuffled(draw, _INSTRUMENTS)
    stock["place"] = _shuffled(draw, tuple(dict.fromkeys(town(draw) for _ in range(2 * PEOPLE[1]))))
    text = ""
    for who in _shuffled(draw, people):
        others = [other.full for other in people if other is not who]
        values = {kind: stock[kind].pop() for kind in kinds}
        values |= {"year": str(1700 + int(250 * next(draw))), "teacher": pick(draw, others)}
        told = _shuffled(draw, values)
        named_at = -1
        for kind in told:
            # The first is always told, or somebody might not come up at all.
            if named_at >= 0 and next(draw) > TOLD:
                continue
            name = who.pronoun if named_at >= 0 and next(draw) < PRONOUN else who.full
            before, between, after = _said(draw, kind, values[kind])
            sentence = _capital(before + name)
            if name == who.full:
                named_at = len(text) + len(before)
            facts.append(_Fact(who, kind, values[kind], len(text) + len(sentence) + len(between), named_at))
            text += f"{sentence}{between}{values[kind]}{after}. "
    return text.rstrip(), facts


def _said(draw: Draws, kind: str, what: str) -> tuple[str, str, str]:
    """What stands before the name, between it and the fact, and behind that."""
    saying = pick(draw, _SAYINGS[kind]).replace("{a}", f"{'an' if what[0] in 'aeiou' else 'a'} {{}}")
    before, between, after = saying.split("{}")
    return before, between, after


def _question(draw: Draws, facts: list[_Fact]) -> tuple[str, tuple[str, int]]:
    """A question that the facts answer in one way only, and its answer with where it begins."""
    fact = pick(draw, facts)
    way = next(draw)
    if way < 0.25 and fact.kind in _ASKED_BACK:
        return pick(draw, _ASKED_BACK[fact.kind]).format(fact.what), (fact.who.full, fact.named_at)
    # Over two facts: somebody is named by a trade instead of by name.
    trade = [other for other in facts if other.who == fact.who and other.kind == "trade"]
    whom = f"the {trade[0].what}" if way > 0.75 and trade and fact.kind != "trade" else fact.who.full
    return pick(draw, _ASKED[fact.kind]).format(whom), (fact.what, fact.at)


def _shuffled(draw: Draws, things: Iterable[T]) -> list[T]:
    """The things in a random order."""
    return [thing for _, _, thing in sorted((next(draw), number, thing) for number, thing in enumerate(things))]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
