"""The page: the verdict in words, the tables, the doubts, the charts, and how it was measured."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from importlib.resources import files

from escala import __version__
from escala.analyse.annex import NOTHING, Annex
from escala.analyse.language import language, say
from escala.analyse.plain import LONGEST_REASON, plain
from escala.analyse.row import Summary
from escala.analyse.verdict import Verdict
from escala.report.charts.matter import Matter
from escala.report.energy_columns import energy_sections
from escala.report.html import words
from escala.report.html.about import About, about_html
from escala.report.html.element import Html, element, joined, name, raw
from escala.report.html.plots import Drawn, charts_html
from escala.report.html.renderer import renderer
from escala.report.html.tables import section_html, table_html
from escala.report.sections import sections
from escala.report.table import legend, tables
from escala.report.time_shares import time_share_sections

UNKNOWN = About()


def write(
    summaries: Sequence[Summary],
    verdict: Verdict,
    annex: Annex = NOTHING,
    matter: Matter | None = None,
    about: About = UNKNOWN,
    bundle: Callable[[], str] = renderer,
) -> str:
    """The whole page. `matter` is what charts are made of, left out: the summaries; `bundle` gives the renderer.

    Nothing is loaded: scripts and style stand inside, and the page's policy lets no other run and nothing be fetched.
    """
    drawn = charts_html(matter or Matter(summaries), verdict.cautions)
    style, script, drawing = _own("page.css"), _own("page.js"), bundle()
    body = element("body", *_body(summaries, verdict, annex, drawn, about))
    scripts = [
        raw("script", drawn.data, type_="application/json", id="plots"),
        # Data until a chart comes near: to run so much first would keep the tables waiting.
        raw("script", drawing, type_="text/plain", id="renderer"),
        raw("script", script),
    ]
    policy = _policy([drawing, script], style)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", _title(about)),
        raw("style", style),
    )
    # The scripts stand last, so that words and tables are there before the renderer is read.
    whole = body.text.removesuffix("</body>") + joined(scripts).text + "</body>"
    return f"<!doctype html>\n{element('html', head, Html(whole), lang=language()).text}\n"


def _policy(scripts: Sequence[str], style: str) -> str:
    allowed = " ".join(map(_hash, scripts))
    return f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _own(file: str) -> str:
    return files("escala.report.html").joinpath(file).read_text(encoding="utf-8")


def _title(about: About) -> str:
    return plain(about.title, LONGEST_REASON) or say(words.UNTITLED)


def _body(summaries: Sequence[Summary], verdict: Verdict, annex: Annex, drawn: Drawn, about: About) -> Iterator[Html]:
    yield element("header", *_header(about))
    found = tables(summaries, verdict)
    parts = [("verdict", say(words.VERDICT), list(_verdict(verdict)))]
    if found:
        marks = [caution.mark for caution in verdict.cautions]
        shown = [
            element("p", say(words.SORT_HINT), class_="facts scripted"),
            *(table_html(table, marks) for table in found),
        ]
        shown.append(element("p", legend(found), class_="facts"))
        shown += [
            section_html(section)
            for section in (*energy_sections(summaries), *time_share_sections(summaries), *sections(annex))
        ]
        parts.append(("comparison", say(words.TABLE), shown))
    if verdict.cautions:
        parts.append(("doubts", say(words.DOUBTS), [_cautions(verdict)]))
    if found:
        parts.append(("charts", say(words.CHARTS), [drawn.html]))
    if (measured := about_html(about)).text:
        parts.append(("measured", say(words.MEASURED_ON), [measured]))
    links = (element("li", element("a", heading, href=f"#{key}")) for key, heading, _ in parts)
    yield element("nav", element("ul", *links), aria_label=say(words.CONTENTS))
    yield element("noscript", element("p", say(words.NO_SCRIPT)))
    sections_ = [element("section", element("h2", title), *inner, id=key) for key, title, inner in parts]
    yield element("main", *sections_)
    yield element("footer", element("p", say(words.MADE_BY, version=__version__)))
    yield element("div", id="hover", role="status", hidden="hidden")


def _header(about: About) -> Iterator[Html]:
    yield element("button", say(words.THEME), id="theme", type_="button", class_="scripted")
    yield element("h1", name(_title(about)))
    if about.about:
        yield element("p", name(plain(about.about)), class_="about")
    if about.quick:
        yield element("p", say(words.QUICK), class_="note")


def _verdict(verdict: Verdict) -> Iterator[Html]:
    if not verdict.standings:
        yield from (element("p", name(sentence)) for sentence in verdict.sentences)
    for standing in verdict.standings:
        if standing.heading:
            yield element("h3", name(standing.heading))
        yield element("ul", *(element("li", name(sentence)) for sentence in standing.sentences))


def _cautions(verdict: Verdict) -> Html:
    items = [
        part
        for caution in verdict.cautions
        for part in (
            element("dt", f"{caution.mark} {say(caution.doubt)}", id=f"doubt-{caution.mark}"),
            element("dd", name(caution.where), element("br"), caution.advice),
        )
    ]
    return element("dl", *items)
