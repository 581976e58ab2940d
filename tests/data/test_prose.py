from __future__ import annotations

import hashlib
import itertools
import re

from escala.data import prose
from escala.data.names import MEN, WOMEN
from escala.data.prose import Prose
from escala.data.topics import TOPICS


def first(source: Prose, rows: int, part: str = "train") -> list[str]:
    return list(itertools.islice(source.documents(part), rows))


ARTICLES = first(Prose(), 300)


def test_a_text_depends_on_seed_part_and_number_alone() -> None:
    assert first(Prose(train=20), 500) == ARTICLES[:20]
    others = [first(Prose(), 20, part) for part in ("validation", "test")] + [first(Prose(seed=1), 20)]
    texts = [*ARTICLES[:20], *itertools.chain(*others)]
    assert len(set(texts)) == 80


def test_parts_and_sizes() -> None:
    source = Prose(train=5, test=3)
    assert source.parts() == ("train", "validation", "test")
    assert [len(list(source.documents(part))) for part in source.parts()] == [5, 3, 3]
    # The default is about two million words.
    words = sum(len(text.split()) for text in ARTICLES) / len(ARTICLES)
    assert 1_800_000 < words * Prose.train < 2_200_000


def test_known_texts() -> None:
    """A change of these needs a new REVISION."""
    assert prose.REVISION == 1
    said = "".join(first(Prose(), 50, "test"))
    assert (
        hashlib.sha256(said.encode()).hexdigest()
        == "a207d6881bfe5630211055c1e3c32c4928d230b6980d65345ef5a95e36684225"
    )


def test_quotations_and_brackets_are_closed() -> None:
    pairs = {"”": "“", ")": "(", "]": "["}
    for text in ARTICLES:
        open_ones = list[str]()
        for sign in text:
            if sign in pairs.values():
                open_ones.append(sign)
            elif sign in pairs:
                assert open_ones.pop() == pairs[sign]
        assert not open_ones
    assert sum(text.count("”") for text in ARTICLES) > 300


def test_what_is_said_of_somebody_stays_true() -> None:
    """Pronouns, trades, homes and treasures are the same each time."""
    reminders = 0
    for text in ARTICLES:
        introduced = re.findall(r"([A-Z]\w+) ([A-Z]\w+), an? ([\w ]+) from (\w+)", text)
        trades = {
            last: {(trade, home) for _, name, trade, home in introduced if name == last}
            for _, last, _, _ in introduced
        }
        for last, trade, home in re.findall(r"(\w+) was still an? ([\w ]+) in (\w+)\.", text):
            reminders += 1
            assert (trade, home) in trades[last]
        for home, full in re.findall(r"In (\w+), everybody knew the [\w -]+ of (\w+ \w+)\.", text):
            reminders += 1
            assert home in {place for _, place in trades[full.split()[1]]}
    assert reminders > 100


def test_verbs_agree_with_their_subject() -> None:
    plurals = {f"{thing}s" for topic in TOPICS for thing in topic.things}
    seen = 0
    for text in ARTICLES:
        for subject, verb in re.findall(r"[“(.] ?The ([\w ]+?) (?:of|next to|that) [\w ]+? (was|were) ", text):
            seen += 1
            assert (subject in plurals) == (verb == "were"), subject
    assert seen > 1000


def test_years_only_rise() -> None:
    rising = 0
    for text in ARTICLES:
        years = [int(year) for year in re.findall(r"[Ii]n (1[789]\d\d|20\d\d) ", text)]
        assert years == sorted(set(years))
        rising += len(years) > 1
    assert rising > 100


def test_the_end_lists_the_people_in_order() -> None:
    names = "|".join((*WOMEN, *MEN))
    for text in ARTICLES:
        *body, last = text.strip().split("\n\n")
        listed = re.findall(rf"(?:{names}) \w+", last)
        assert last.startswith("So much is known of ")
        introduced = re.findall(rf"((?:{names}) \w+), an? ", "\n".join(body))
        assert introduced == listed


def test_words_form_their_plural_with_s() -> None:
    for topic in TOPICS:
        assert not [
            thing for thing in topic.things if thing.endswith(("s", "x", "y", "ch", "sh")) and thing[-2:] != "ay"
        ]
        assert not [deed for deed in topic.deeds if deed.endswith("e")]
