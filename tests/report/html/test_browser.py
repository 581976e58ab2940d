"""The page in a real browser: nothing is fetched, nothing is refused, sorting, hovering and the keyboard work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import energetic
import pytest
import recorded as made
import shown as cases
from msgspec.structs import replace

from escala.analyse.annex import Annex
from escala.analyse.epochs import by_epoch
from escala.analyse.summary import summarise
from escala.analyse.verdict import judge
from escala.report.charts.matter import Line, Matter, Shade, Trace
from escala.report.html.about import About
from escala.report.html.page import write
from escala.terms.record import Epoch, Record

BROWSER, WHY_NONE = chromium.found()
pytestmark = pytest.mark.skipif(BROWSER is None, reason=WHY_NONE)

TRACE = Trace("single", "", (Line("cuda:0", (0.0, 0.5, 1.0), (70.0, 300.0, 310.0)),), (Shade("train", 0.2, 0.8),))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # Without a user of its own a sandbox cannot be had in a container; the page is ours.
        opened = driver.chromium.launch(executable_path=str(BROWSER), args=["--no-sandbox"])
        yield opened
        opened.close()


class Opened:
    """A page, and what it said or asked for."""

    def __init__(self, browser: Any, file: Path, **more: Any) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page = browser.new_page(**more)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.goto(file.as_uri())

    def draw_all(self) -> None:
        """Go down the page as a reader does, until every chart is there."""
        for place in range(self.page.locator(".canvas").count()):
            self.page.locator(".canvas").nth(place).scroll_into_view_if_needed()
            self.page.locator(".canvas").nth(place).locator("svg").wait_for()


def written(folder: Path, records: list[Record], **about: Any) -> Path:
    rows = summarise(records, "single")
    file = folder / "report.html"
    traces = (replace(TRACE, label=rows[-1].label),)
    matter = Matter(rows, by_epoch(records, rows), traces)
    file.write_text(write(rows, judge(rows), Annex(), matter, About(**about)), encoding="utf-8")
    return file


def learned(records: list[Record]) -> list[Record]:
    curve = tuple(Epoch(1.0, 2.0, f"o{place}", 0.1, 0.5 + place / 10) for place in range(3))
    return [replace(record, epochs=curve) if record.outcome == "done" else record for record in records]


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("usual"), learned(energetic.pair_campaign()), title="A campaign")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_is_drawn_and_nothing_is_fetched_or_refused(browser: Any, usual: Path, scheme: str) -> None:
    opened = Opened(browser, usual, color_scheme=scheme)
    opened.draw_all()
    assert opened.page.locator(".canvas").count() == 12
    assert {one.get_attribute("data-drawn") for one in opened.page.locator(".canvas").all()} == {scheme}
    assert opened.asked == [usual.as_uri()]
    assert opened.said == []


def test_all_is_drawn_in_time_without_going_down_the_page(browser: Any, usual: Path) -> None:
    opened = Opened(browser, usual)
    opened.page.locator(".canvas[data-drawn]").nth(11).wait_for()
    assert opened.page.evaluate("window.scrollY") == 0
    assert opened.page.locator(".canvas svg").count() == 12
    assert opened.said == []


def test_the_policy_is_at_work(browser: Any, usual: Path) -> None:
    opened = Opened(browser, usual)
    opened.page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.ran = true";
        document.body.append(script);
        const image = document.createElement("img");
        image.src = "http://127.0.0.1:9/x.png";
        document.body.append(image);
    }""")
    opened.page.wait_for_timeout(100)
    assert opened.page.evaluate("window.ran") is None
    assert sum("Content Security Policy" in said for said in opened.said) == 2


def test_a_heading_sorts_by_mouse_and_by_keyboard(browser: Any, tmp_path: Path) -> None:
    records = [
        *made.repeats("single", (20.0,) * 5),
        *made.repeats("ddp x2", (3.0,) * 5, ways=2),
        *made.repeats("b", (100.0,) * 5),
    ]
    page = Opened(browser, written(tmp_path, records)).page
    table = page.locator("#comparison table").first
    names = table.locator("tbody th")
    heading = table.locator("th", has_text="total s")
    heading.locator("button").click()
    assert names.all_inner_texts() == ["ddp x2", "single (baseline)", "b"]
    assert heading.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")
    assert names.all_inner_texts() == ["b", "single (baseline)", "ddp x2"]
    assert heading.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Shift+Tab")
    assert heading.locator("button").evaluate("one => one === document.activeElement") is False
    table.locator("th", has_text="strategy").locator("button").focus()
    page.keyboard.press("Space")
    assert names.all_inner_texts() == ["b", "ddp x2", "single (baseline)"]
    assert heading.get_attribute("aria-sort") is None


def test_values_are_told_on_hover_and_in_a_table(browser: Any, usual: Path) -> None:
    opened = Opened(browser, usual)
    chart = opened.page.locator("#chart-phases")
    chart.scroll_into_view_if_needed()
    chart.locator("svg").wait_for()
    hover = opened.page.locator("#hover")
    assert hover.is_hidden()
    chart.locator("svg .mark-rect.role-mark path").first.hover()
    hover.wait_for()
    assert hover.inner_text().split("\n") == ["row: single", "phase: train", "median: 2.00 s"]
    opened.page.mouse.move(0, 0)
    hover.wait_for(state="hidden")
    chart.locator("summary").focus()
    opened.page.keyboard.press("Enter")
    chart.locator("td", has_text="2.00 s").wait_for()
    # Of layers that show parts of the same rows there is one table.
    plane = opened.page.locator("#chart-cost-energy")
    plane.locator("summary").click()
    plane.locator("table").first.wait_for()
    assert plane.locator("table").count() == 1
    assert plane.locator("tbody tr").count() == 2
    assert opened.said == []


def test_the_button_changes_light_to_dark(browser: Any, usual: Path) -> None:
    page = Opened(browser, usual, color_scheme="light").page
    page.locator(".canvas svg").first.wait_for()
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.locator("#theme").click()
    page.locator(".canvas[data-drawn=dark]").first.wait_for()
    assert page.evaluate(ground) != before


def test_hostile_names_are_text(browser: Any, tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>"
    long = "".join(chr(0x61 + place % 26) for place in range(300))
    names = [name, *cases.HOSTILE, long]
    records = made.repeats("single", made.SLOW)
    for one in names:
        records += made.repeats(one, made.FAST, ways=2, strategy="ddp")
    opened = Opened(browser, written(tmp_path, learned(records), title=name, about=name, source=name))
    opened.draw_all()
    page = opened.page
    assert opened.said == []
    assert len(opened.asked) == 1
    assert page.locator("img, iframe, main script, main style, main link").count() == 0
    assert page.title() == name
    rows = page.locator("#comparison table").first.locator("tbody th").all_inner_texts()
    assert name in rows
    assert "שלום עולם" in rows
    assert "=cmd()" in rows
    assert max(map(len, rows)) <= 60
    # In a chart a name is text of the picture, and so it is where hovering tells of it.
    chart = page.locator("#chart-phases")
    assert chart.locator("svg text", has_text=name).count() > 0
    bar = chart.locator("svg .mark-rect.role-mark path").nth(1)
    bar.scroll_into_view_if_needed()
    bar.hover()
    page.locator("#hover").wait_for()
    assert page.locator("#hover *").evaluate_all("all => all.every((one) => one.tagName === 'DIV')")
    # A name written from right to left leaves the page as wide as it was.
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.locator(".values summary").first.click()
    assert page.locator("img").count() == 0
