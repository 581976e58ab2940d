"""Energy times time of each row."""

from __future__ import annotations

from escala.analyse.compare import Block
from escala.analyse.language import say
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import interval_text, times_text
from escala.report.charts import words
from escala.report.charts.dots import Dot, dots
from escala.report.charts.energy import told
from escala.report.charts.layers import Part
from escala.report.charts.matter import Matter
from escala.report.charts.plot import Plot, by_block, drawable, names_of


def plots(matter: Matter) -> tuple[Plot, ...]:
    """A dot and its interval a row with energy, J s; a plot a block."""
    return by_block((row for row in matter.rows if _edp(row) is not None), _of_block)


def _edp(row: Summary) -> Interval | None:
    return drawable(row.edp if row.target is None else row.to_score_edp)


def _of_block(block: Block) -> Part:
    names = names_of(block)
    found = [Dot(names[id(row)], one, _told(row, one)) for row in block if (one := _edp(row)) is not None]
    axis = say(words.EDP_TO_SCORE if any(row.target is not None for row in block) else words.EDP_AXIS)
    return dots(found, axis, say(words.EDP))


def _told(row: Summary, found: Interval) -> str:
    text = told(row, f"{interval_text(found)} J s")
    if row.edp_ratio is None or row.is_baseline:
        return text
    return say(words.TIMES_BASELINE, value=text, times=times_text(row.edp_ratio))
