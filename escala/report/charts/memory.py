"""Peak memory of each row, a bar a device."""

from __future__ import annotations

import altair as alt

from escala.analyse.compare import Block
from escala.analyse.language import say
from escala.analyse.plain import LONGEST_NAME, plain
from escala.analyse.row import Summary
from escala.analyse.wording import size
from escala.report.charts import words
from escala.report.charts.layers import Part, layered, unit
from escala.report.charts.matter import Matter, values
from escala.report.charts.plot import Plot, by_block, names_of
from escala.report.charts.style import BAR, COLOURS, QUIET, WIDTH

_UNITS = (("GiB", 2**30), ("MiB", 2**20))


def plots(matter: Matter) -> tuple[Plot, ...]:
    """Peaks by device of every row that has any, also of those that ran out of memory; a plot a block."""
    return by_block((row for row in matter.rows if row.memory_bytes), _of_block)


def _of_block(block: Block) -> Part:
    most = max(peak for row in block for peak in row.memory_bytes.values())
    symbol, one = next((found for found in _UNITS if most >= found[1]), _UNITS[-1])
    names = names_of(block)

    def told(row: Summary, device: str, peak: int) -> dict[str, str | float]:
        return {
            "row": names[id(row)],
            "device": plain(device, LONGEST_NAME),
            "peak": peak / one,
            "told": size(peak),
        }

    rows = [told(row, device, peak) for row in block for device, peak in row.memory_bytes.items()]
    expected = [
        told(row, device, peak)
        for row in block
        for device, peak in row.memory_estimate_bytes.items()
        if device in row.memory_bytes
    ]
    devices = sorted({plain(device, LONGEST_NAME) for row in block for device in row.memory_bytes})
    colours = alt.Scale(domain=devices, range=[COLOURS[place % len(COLOURS)] for place in range(len(devices))])
    bars = (
        alt.Chart(values(rows))
        .mark_bar()
        .encode(
            x=alt.X("peak:Q", title=say(words.MEMORY, unit=symbol)),
            y=alt.Y("row:N", title=None, sort=None, scale=alt.Scale(paddingInner=0.25)),
            yOffset=alt.YOffset("device:N", sort=devices),
            color=alt.Color("device:N", title=say(words.DEVICE), scale=colours),
            tooltip=[
                alt.Tooltip("row:N", title=say(words.ROW)),
                alt.Tooltip("device:N", title=say(words.DEVICE)),
                alt.Tooltip("told:N", title=say(words.PEAK)),
            ],
        )
    )
    height = len(block) * max(BAR, 8 * len(devices) + 6)
    if not expected:
        return unit(bars, width=WIDTH, height=height)
    marks = (
        alt.Chart(values(expected))
        .mark_tick(
            color=QUIET,
            stroke="white",
            strokeWidth=1,
            thickness=4,
            bandSize=max(4, height / len(block) / len(devices) - 4),
        )
        .encode(
            x=alt.X("peak:Q", title=say(words.MEMORY, unit=symbol)),
            y=alt.Y("row:N", title=None, sort=None),
            yOffset=alt.YOffset("device:N", sort=devices),
            tooltip=[
                alt.Tooltip("row:N", title=say(words.ROW)),
                alt.Tooltip("device:N", title=say(words.DEVICE)),
                alt.Tooltip("told:N", title=say(words.EXPECTED)),
            ],
        )
    )
    return layered([bars, marks], width=WIDTH, height=height)
