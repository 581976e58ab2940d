"""What a campaign was: asked for, by which words, run on which machines with which software."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from escala.analyse.language import say
from escala.analyse.plain import LONGEST_NAME, LONGEST_REASON, plain
from escala.report.html import words
from escala.report.html.element import Html, element, joined, name
from escala.report.probe_text import facts
from escala.terms.host import Host
from escala.terms.printable import printable
from escala.terms.record import USER_LINES, Record

_TAB = 4


class About(Struct, frozen=True):
    """A campaign around its figures. `hosts` holds one of each kind; `software` versions by name, of all runs."""

    title: str = ""
    about: str = ""
    quick: bool = False
    source: str = ""
    overrides: tuple[str, ...] = ()
    command: str = ""
    hosts: tuple[Host, ...] = ()
    software: dict[str, tuple[str, ...]] = {}
    runs: int = 0
    first: str = ""
    last: str = ""


def seen(records: Sequence[Record]) -> About:
    """What the records tell of their machines and software."""
    hosts: dict[object, Host] = {}
    software: dict[str, dict[str, None]] = {}
    for record in records:
        hosts.setdefault((record.host.likeness, record.host.name), record.host)
        for key, version in record.software.items():
            if key != USER_LINES:
                software.setdefault(key, {})[version] = None
    started = sorted(record.started for record in records if record.started)
    versions = {key: tuple(found) for key, found in software.items()}
    first, last = (started[0], started[-1]) if started else ("", "")
    return About(hosts=tuple(hosts.values()), software=versions, runs=len(records), first=first, last=last)


def about_html(about: About) -> Html:
    """Machines, software, the experiment as it was written, and the exact command."""
    return joined(_parts(about))


def _parts(about: About) -> Iterator[Html]:
    if about.command:
        yield from (element("h3", say(words.COMMAND)), _pre(about.command))
    if about.overrides:
        yield from (element("h3", say(words.OVERRIDES)), _pre("\n".join(about.overrides)))
    for place, host in enumerate(about.hosts, 1):
        alone = len(about.hosts) == 1
        yield element("h3", say(words.HOST) if alone else say(words.HOST_OF, place=place, count=len(about.hosts)))
        yield _pairs([(key, plain(value, LONGEST_REASON)) for key, value in facts(host)])
    told = [
        (plain(key, LONGEST_NAME), plain(", ".join(versions), LONGEST_REASON))
        for key, versions in sorted(about.software.items())
    ]
    if told:
        yield from (element("h3", say(words.SOFTWARE)), _pairs(told))
    if about.first:
        when = say(words.FROM_TO, first=plain(about.first), last=plain(about.last))
        yield from (
            element("h3", say(words.RECORDED)),
            _pairs([(say(words.RUNS), str(about.runs)), (say(words.RECORDED), when)]),
        )
    if about.source:
        yield from (element("h3", say(words.EXPERIMENT)), _pre(about.source))


def _pairs(found: Sequence[tuple[str, str]]) -> Html:
    return element(
        "dl", *(part for key, value in found for part in (element("dt", name(key)), element("dd", name(value))))
    )


def _pre(text: str) -> Html:
    lines = (printable(line.expandtabs(_TAB)) for line in text.splitlines())
    return element("pre", "\n".join(lines), tabindex="0")
