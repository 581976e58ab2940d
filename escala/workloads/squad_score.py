"""Exact match and F1 of answers, as SQuAD v1.1's official evaluation defines them (Rajpurkar et al. 2016)."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """Lower case, without ASCII punctuation and then without articles, words parted by one space."""
    plain = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def exact_match(told: str, answers: Iterable[str]) -> float:
    """1 where `told` is one of the accepted answers but for what `normalised` takes away, else 0."""
    return _best(_same, told, answers)


def f1(told: str, answers: Iterable[str]) -> float:
    """The harmonic mean of the shares of words in common, of the accepted answer where it is highest; 0 to 1."""
    return _best(_overlap, told, answers)


def _best(measure: Callable[[str, str], float], told: str, answers: Iterable[str]) -> float:
    # Version 1.1 has an answer for every question; without one nothing that is told can be right.
    return max((measure(normalised(told), normalised(answer)) for answer in answers), default=0.0)


def _same(told: str, answer: str) -> float:
    return float(told == answer)


def _overlap(told: str, answer: str) -> float:
    words, wanted = told.split(), answer.split()
    common = (Counter(words) & Counter(wanted)).total()
    if not common:
        return 0.0
    precision, recall = common / len(words), common / len(wanted)
    return 2 * precision * recall / (precision + recall)
