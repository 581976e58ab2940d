"""How much faster each row is than the baseline, with the interval, and where as many devices should bring it."""

from __future__ import annotations

from escala.analyse.compare import Block
from escala.analyse.language import say
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import speedup_text
from escala.report.charts import words
from escala.report.charts.dots import Dot, dots
from escala.report.charts.layers import Part
from escala.report.charts.matter import Matter
from escala.report.charts.plot import Plot, by_block, drawable, names_of


def plots(matter: Matter) -> tuple[Plot, ...]:
    """A dot and its interval a row, a mark at the ideal; a plot a block with more than its baseline."""
    return by_block((row for row in matter.rows if _speedup(row) is not None), _of_block)


def _speedup(row: Summary) -> Interval | None:
    if row.target is not None:
        return drawable(row.speedup_to_score)
    return row.speedup_total or row.speedup_train


def _of_block(block: Block) -> Part | None:
    if all(row.is_baseline for row in block):
        return None
    ways = next((row.ways for row in block if row.is_baseline), 1)
    names = names_of(block)
    found = [
        Dot(names[id(row)], one, speedup_text(one), row.ways / ways)
        for row in block
        if (one := _speedup(row)) is not None
    ]
    if any(row.target is not None for row in block):
        axis = say(words.SPEEDUP_TO_SCORE)
    else:
        axis = say(words.SPEEDUP_ALL if any(row.speedup_total for row in block) else words.SPEEDUP_TRAINING)
    return dots(found, say(words.IDEAL_MARK, what=axis), say(words.SPEEDUP))
