"""Reports in another language: nothing in them is left untold.

A made-up language shifts the letters of every text out of the alphabet. What is still of the alphabet in a report
told in it is a name, a unit, or a text that nobody marked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from string import Formatter
from typing import Any

import pytest
import recorded as made
import texts
import varied
from html_texts import Page

from escala.analyse.language import Words, speaking, words_of
from escala.analyse.verdict import judge
from escala.report import FOR_PEOPLE, WRITERS, terminal
from escala.report.charts import CHARTS
from escala.report.html import page

_SHIFT = 0x100
_UNITS = r"s|ms|J|kJ|MJ|x|GiB|MiB|[a-v](?= |$)"
"""Letters that mark doubts stand alone, as units do."""
_TOLD = ("title", "description", "text")


@cache
def shifted() -> Words:
    found = {text: _shifted(text) for text in texts.texts()}
    return Words("xx", found, {one: (_letters(one), _letters(f"{one}s")) for one in texts.nouns()})


def _shifted(text: str) -> str:
    parts = Formatter().parse(text)
    return "".join(_letters(plain) + (f"{{{field}}}" if field is not None else "") for plain, field, _, _ in parts)


def _letters(text: str) -> str:
    return "".join(chr(ord(sign) + _SHIFT) if sign.isascii() and sign.isalpha() else sign for sign in text)


def left(text: str) -> set[str]:
    """Words of the alphabet that are no names and no units."""
    return {word for word in re.findall(r"[A-Za-z]+", _without_names(text)) if not re.fullmatch(_UNITS, word)}


def _plain(text: str) -> str:
    """A text as it shows, without the signs that keep Markdown from reading it."""
    return unescape(text).replace("\\", "")


def _without_names(text: str) -> str:
    for name in sorted(varied.NAMES, key=len, reverse=True):
        text = re.sub(rf"(?<![^\W\d_]){re.escape(name)}(?![^\W\d_])", "·", text)
    return text


@pytest.mark.parametrize("case", varied.CAMPAIGNS)
@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_nothing_in_a_text_is_left_untold(case: str, form: str) -> None:
    with speaking(shifted()):
        rows, annex, _, _ = varied.told(varied.CAMPAIGNS[case]())
        found = judge(rows)
        text = (
            terminal.write(rows, found, annex, width=400) if form == "terminal" else WRITERS[form](rows, found, annex)
        )
    assert left(_plain(text)) == set()


@pytest.mark.parametrize("case", varied.CAMPAIGNS)
def test_nothing_in_a_page_is_left_untold(case: str) -> None:
    with speaking(shifted()):
        rows, annex, matter, about = varied.told(varied.CAMPAIGNS[case]())
        found = Page(page.write(rows, judge(rows), annex, matter, about))
    assert found.language == "xx"
    assert left("\n".join(found.told)) == set()
    data = json.loads(found.data)
    assert (
        left(" ".join([data["words"]["values"], data["words"]["failed"], *data["words"]["fields"].values()])) == set()
    )


@pytest.mark.parametrize("case", varied.CAMPAIGNS)
def test_nothing_in_a_chart_is_left_untold(case: str) -> None:
    with speaking(shifted()):
        _, _, matter, _ = varied.told(varied.CAMPAIGNS[case]())
        for name, chart in CHARTS.items():
            for plot in chart.plots(matter):
                assert left("\n".join([plot.heading, *plot.notes, *_in_chart(plot.part)])) == set(), name


def _in_chart(part: Any, key: str = "") -> Iterator[str]:
    """Titles, legends and values of data, but not the grammar around them."""
    if isinstance(part, dict):
        rows = [*part.get("datasets", {}).values(), part.get("data", {}).get("values", [])]
        yield from (value for one in rows for row in one for value in row.values() if isinstance(value, str))
        for name, one in part.items():
            if name not in ("datasets", "data"):
                yield from _in_chart(one, name)
    elif isinstance(part, list):
        for one in part:
            yield from _in_chart(one, key)
    elif isinstance(part, str) and key in (*_TOLD, "domain"):
        yield part


def test_a_report_in_spanish_reads_as_spanish() -> None:
    with speaking(words_of("es")):
        rows, annex, _, _ = varied.told(made.clean_campaign())
        text = WRITERS["markdown"](rows, judge(rows), annex)
    assert "ddp x2 es la más rápida: 1.70x [1.68, 1.72] frente a single en todas las fases" in text
    assert "| estrategia |" in text
    assert "1.90x [1.87, 1.92] solo en el entrenamiento" in text
    assert "con exactitud 0.8710 frente a 0.8710" in text
    assert "### Lo publicado junto a lo medido" in text


@pytest.mark.parametrize("case", varied.CAMPAIGNS)
@pytest.mark.parametrize("form", FOR_PEOPLE)
def test_no_english_is_left_in_a_spanish_report(case: str, form: str) -> None:
    with speaking(words_of("es")):
        rows, annex, matter, about = varied.told(varied.CAMPAIGNS[case]())
        if form == "html":
            text = "\n".join(Page(page.write(rows, judge(rows), annex, matter, about)).told)
        else:
            text = WRITERS[form](rows, judge(rows), annex)
    assert _english() & {word.lower() for word in re.findall(r"[^\W\d_]+", _without_names(_plain(text)))} == set()


@cache
def _english() -> set[str]:
    """Words of the texts that are no words of the catalogue."""
    spanish = words_of("es")
    sides = [*spanish.texts.items(), *((one, " ".join(both)) for one, both in spanish.nouns.items())]
    english, other = (
        {word.lower() for side in sides for word in re.findall(r"[^\W\d_]+", re.sub(r"\{\w+\}", " ", side[place]))}
        for place in (0, 1)
    )
    return english - other
