"""The table of charts: each takes what a report knows and returns its plots, none where it has nothing to show."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from escala.analyse.language import say
from escala.analyse.plain import LONGEST_REASON, plain
from escala.report.charts import (
    beside,
    curves,
    edp,
    efficiency,
    energy,
    memory,
    phases,
    planes,
    power,
    scaling,
    speedup,
    waterfall,
    words,
)
from escala.report.charts.matter import Matter
from escala.report.charts.plot import Plot
from escala.terms.doubts import Doubt

_TIMES: tuple[Doubt, ...] = (
    "simulated",
    "unstable",
    "short blocks",
    "not warm",
    "few repeats",
    "other work",
    "other threads",
    "within noise",
    "disturbed",
    "busy host",
    "other host",
    "throttled",
)
_SCORES: tuple[Doubt, ...] = (
    "few repeats",
    "other work",
    "score below baseline",
    "score untested",
    "target missed",
    "generated data",
)
_ENERGY: tuple[Doubt, ...] = (
    "few repeats",
    "other work",
    "busy host",
    "shared device",
    "throttled",
    "short energy window",
    "other meter",
    "energy estimated",
    "energy disagrees",
)
_MEMORY: tuple[Doubt, ...] = ("simulated", "other work", "shared process", "shared device")
_POWER: tuple[Doubt, ...] = ("busy host", "shared device", "throttled", "short energy window", "energy estimated")


class Chart(Struct, frozen=True):
    """How a chart is drawn, and the doubts that concern what it shows."""

    plots: Callable[[Matter], tuple[Plot, ...]]
    doubts: tuple[Doubt, ...]
    of_energy: bool = False


CHARTS: dict[str, Chart] = {
    "phases": Chart(phases.plots, _TIMES),
    "speed-up": Chart(speedup.plots, _TIMES),
    "waterfall": Chart(waterfall.plots, _TIMES),
    "efficiency": Chart(efficiency.plots, _TIMES),
    "score": Chart(curves.by_epoch, _SCORES),
    "score-time": Chart(curves.over_time, tuple(dict.fromkeys((*_SCORES, *_TIMES)))),
    "memory": Chart(memory.plots, _MEMORY),
    "power": Chart(power.plots, _POWER, of_energy=True),
    "energy": Chart(energy.plots, _ENERGY, of_energy=True),
    "edp": Chart(edp.plots, tuple(dict.fromkeys((*_ENERGY, *_TIMES))), of_energy=True),
    "cost-energy": Chart(planes.energy_plots, tuple(dict.fromkeys((*_ENERGY, *_TIMES))), of_energy=True),
    "cost-score": Chart(planes.score_plots, tuple(dict.fromkeys((*_SCORES, *_TIMES)))),
    "scaling": Chart(scaling.plots, _TIMES),
    "published": Chart(beside.plots, tuple(dict.fromkeys((*_TIMES, *_SCORES)))),
}


def why_absent(name: str, matter: Matter) -> str:
    """Why a chart has nothing to show, a sentence or two."""
    absent = say(words.ABSENT[name])
    reason = next((row.energy_reason for row in matter.rows if row.energy_reason), None)
    if not CHARTS[name].of_energy or reason is None:
        return absent
    return say(words.ENERGY_REASON, absent=absent, reason=plain(reason, LONGEST_REASON))
