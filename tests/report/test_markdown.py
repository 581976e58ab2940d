"""The report as Markdown: a reader of GitHub tables must see rows, and obey no name."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
import recorded as made
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from shown import CAMPAIGNS, HOSTILE, shown

from escala.analyse.plain import plain
from escala.report.markdown import escaped, line, write
from escala.report.table import tables

ALLOWED = {"p", "ul", "li", "h3", "strong", "table", "thead", "tbody", "tr", "th", "td"}
READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


class Seen(HTMLParser):
    """Tags, cells by row, and all text of a rendered page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self.text = ""
        self.in_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self.in_cell = False

    def handle_comment(self, data: str) -> None:
        self.tags.add("comment")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.in_cell:
            self.rows[-1][-1] += data


def read(text: str) -> Seen:
    return Seen(READER.render(text))


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_the_rendered_table_holds_the_cells(name: str) -> None:
    found = shown(CAMPAIGNS[name]())
    seen = read(write(*found))
    assert seen.tags <= ALLOWED
    expected = []
    for table in tables(*found):
        expected.append([column.title.replace("\n", " ") for column in table.columns])
        expected += [list(row) for row in zip(*(column.cells for column in table.columns), strict=True)]
    assert seen.rows == expected


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_the_rendered_verdict_reads_as_it_was_spoken(name: str) -> None:
    summaries, verdict = shown(CAMPAIGNS[name]())
    text = read(write(summaries, verdict)).text
    for standing in verdict.standings:
        assert all(sentence in text for sentence in standing.sentences)
    for caution in verdict.cautions:
        assert f"{caution.mark}: {caution.doubt}" in text
        assert caution.advice in text


def test_nothing_recorded() -> None:
    assert write(*shown([])) == "Nothing has been recorded yet.\n"


def test_clean_figures_are_readable_in_the_source() -> None:
    text = write(*shown(made.clean_campaign()))
    assert "| ddp x2 | 2 | 64 (32) | 5 | 0.525 | 0.100 | 0.200 | 1.35 [1.34, 1.37] | 11,429 |" in text
    assert "\x1b" not in text


def test_what_was_not_done_is_listed() -> None:
    text = write(*shown(made.troubled_campaign()))
    assert "- ddp x4: unfit: needs 4 CPU cores; this host has 2" in text


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_shows_as_it_is_spelled(name: str) -> None:
    records = [*made.repeats("single", made.SLOW), *made.repeats(name, made.FAST, ways=2, strategy="ddp")]
    text = write(*shown(records))
    seen = read(text)
    assert seen.tags <= ALLOWED
    assert seen.rows[2][0] == plain(name, 40)
    assert text.replace("\n", "").isprintable()


SIGNS = st.one_of(st.text(), st.text(alphabet="\\`*_{}[]()#+-.!|~<>&$:/@=w1 \n\"'a", max_size=40))


@settings(deadline=None, max_examples=300)
@given(name=SIGNS)
def test_any_name_survives_a_cell(name: str) -> None:
    shown_name = plain(name)
    seen = read(f"| a | b |\n| :-- | :-- |\n| x{escaped(shown_name)} | y |\n")
    assert seen.tags <= ALLOWED
    assert seen.rows[1] == [f"x{shown_name}", "y"]


@settings(deadline=None, max_examples=300)
@given(name=SIGNS)
def test_any_name_survives_at_the_start_of_an_item(name: str) -> None:
    shown_name = plain(name)
    seen = read(f"- {line(shown_name)}\n- end\n")
    assert seen.tags <= {"ul", "li"}
    assert seen.text.split("\n") == ["", shown_name, "end", "", ""] or not shown_name


@pytest.mark.parametrize("text", ["see https://evil.example/x", "WWW.evil.example", "mail me@evil.example"])
def test_addresses_are_not_left_for_a_reader_to_link(text: str) -> None:
    assert not re.search(r"://|www\.\w|\w@\w", escaped(text), re.IGNORECASE)
    assert read(escaped(text)).text.strip() == text
