"""How much of a speed-up each device brings, against the ideal."""

from __future__ import annotations

from escala.analyse.compare import Block
from escala.analyse.language import say
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import speedup_text
from escala.report.charts import words
from escala.report.charts.dots import Dot, dots
from escala.report.charts.layers import Part
from escala.report.charts.matter import Matter
from escala.report.charts.plot import Plot, by_block, names_of


def plots(matter: Matter) -> tuple[Plot, ...]:
    """A dot and its interval a row, a line at 1; a plot a block with more than its baseline."""
    return by_block((row for row in matter.rows if _efficiency(row) is not None), _of_block)


def _efficiency(row: Summary) -> Interval | None:
    return row.efficiency_total or row.efficiency_train


def _of_block(block: Block) -> Part | None:
    if all(row.is_baseline for row in block):
        return None
    names = names_of(block)
    found = [Dot(names[id(row)], one, speedup_text(one)) for row in block if (one := _efficiency(row)) is not None]
    what = say(words.ALL_PHASES if any(row.efficiency_total for row in block) else words.TRAINING)
    return dots(found, say(words.EFFICIENCY_AXIS, what=what), say(words.EFFICIENCY), ideal_line=1.0)
