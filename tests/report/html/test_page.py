"""The page as text: its policy, its parts, and that no name in it is obeyed."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import recorded as made
import shown as cases
from msgspec.structs import replace

from escala.analyse.annex import Annex
from escala.analyse.epochs import by_epoch
from escala.analyse.summary import summarise
from escala.analyse.verdict import judge
from escala.report.charts import CHARTS, words
from escala.report.charts.matter import Matter
from escala.report.html import plots
from escala.report.html.about import About, seen
from escala.report.html.page import write
from escala.terms.record import Record


class Page(HTMLParser):
    """Tags with their attributes, and the texts of scripts, styles and all else."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.texts: list[str] = []
        self._in = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in = tag

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in in self.raw:
            self.raw[self._in].append(data)
        else:
            self.texts.append(data)


def page_of(records: list[Record], **about: Any) -> Page:
    rows = summarise(records, "single")
    return Page(write(rows, judge(rows), Annex(), Matter(rows, by_epoch(records, rows)), About(**about)))


def test_the_policy_lets_nothing_run_but_what_stands_inside() -> None:
    page = page_of(made.clean_campaign())
    (policy,) = [attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv")]
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    assert set(rules) == {"default-src", "script-src", "style-src", "base-uri", "form-action"}
    data, *scripts = page.raw["script"]
    allowed = {b64decode(one.strip("'").removeprefix("sha256-")) for one in rules["script-src"].split()}
    assert allowed == {sha256(text.encode()).digest() for text in scripts}
    assert json.loads(data)["plots"]


def test_nothing_is_fetched_from_anywhere() -> None:
    page = page_of(made.clean_campaign())
    links = [value for _, attrs in page.tags for key, value in attrs.items() if key in ("src", "href", "action")]
    assert links
    assert all(link is not None and link.startswith("#") for link in links)
    assert not any("url(" in style or "@import" in style for style in page.raw["style"])
    assert not any(key.startswith("on") or key == "style" for _, attrs in page.tags for key in attrs)


def test_links_lead_somewhere() -> None:
    page = page_of(made.troubled_campaign())
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {f"#{one}" for one in ids} >= {attrs["href"] for tag, attrs in page.tags if tag == "a"}


def test_every_chart_is_drawn_or_says_why_not() -> None:
    page = page_of(made.clean_campaign())
    ids = {attrs.get("id") for _, attrs in page.tags}
    for key in CHARTS:
        assert (f"chart-{key}" in ids) != (f"absent-{key}" in ids)
    assert words.ABSENT["published"] in page.texts


def test_doubts_stand_beside_the_figures_that_they_concern() -> None:
    records = made.repeats("single", made.SLOW) + made.repeats("ddp x2", (1.5, 1.6, 1.55), ways=2)
    text = write(rows := summarise(records, "single"), judge(rows))
    sections = dict(re.findall(r'<section class="chart" id="chart-([a-z-]+)">(.*?)</section>', text, re.DOTALL))
    assert "few repeats" in sections["speed-up"]
    assert "few repeats" not in sections["memory"]


def test_the_numbers_of_a_sortable_cell_stand_beside_it() -> None:
    page = page_of(made.clean_campaign())
    keys = [float(attrs["data-key"] or "") for tag, attrs in page.tags if tag == "td" and "data-key" in attrs]
    assert 2.30 in keys
    headings = [tag for tag, _ in page.tags if tag == "th"]
    assert headings


def test_hostile_names_are_text() -> None:
    records = cases.hostile()
    name = "<script>alert(1)</script>"
    page = page_of(records, title=name, about=name, source=f"# {name}\n\u202ex", command=f"escala run '{name}'")
    # Three scripts are the page's own: its data, the renderer, and its own script.
    assert [tag for tag, _ in page.tags].count("script") == 3
    assert not {tag for tag, _ in page.tags} & {"img", "iframe", "object", "embed", "link", "form", "input", "svg"}
    text = "".join(page.texts)
    assert name in text
    assert "=cmd()" in text
    assert "שלום עולם" in text
    for sign in ("\x1b", "\u202e", "\u200b"):
        assert sign not in text + "".join(page.raw["script"][0])
    assert "\\u202ex" in text


def test_a_sweep_of_many_points_is_cut_and_says_so(monkeypatch: Any) -> None:
    monkeypatch.setattr(plots, "MOST_PLOTS", 1)
    page = page_of(made.swept_campaign())
    assert "1 of 2 plots are drawn here; escala report --figures draws all." in page.texts


def test_how_it_was_measured() -> None:
    records = [replace(one, started=f"2026-01-0{n % 5 + 1}") for n, one in enumerate(made.two_hosts())]
    records[0] = replace(records[0], software={"jax": "0.5", "lines of user code": "7"})
    records[1] = replace(records[1], software={"jax": "0.6"})
    told = seen(records)
    assert [host.cpu for host in told.hosts] == ["Xeon Test", "Other Chip"]
    assert (told.software, told.runs) == ({"jax": ("0.5", "0.6")}, 20)
    assert (told.first, told.last) == ("2026-01-01", "2026-01-05")
    rows = summarise(records, "single")
    about = replace(told, title="A title", command="escala run x", source="[train]\n\tbatch = 1", overrides=("a=1",))
    texts = Page(write(rows, judge(rows), Annex(), None, about)).texts
    for text in (
        "A title",
        "escala run x",
        "[train]\n    batch = 1",
        "a=1",
        "Other Chip, 2 cores usable",
        "0.5, 0.6",
    ):
        assert text in texts


def test_no_text_of_the_page_stands_outside_its_catalogue() -> None:
    source = Path(plots.__file__).parent
    for file in ("page.js", "page.css"):
        # Scripts get their words from the page.
        assert not re.search(r'textContent = "[^"]', (source / file).read_text())
