"""Every text of the page, in one place; `say` tells it in the language that is spoken."""

from __future__ import annotations

from typing import Final

UNTITLED: Final = "Report of a campaign"
QUICK: Final = "The study's quick form: every path of the code, too little work for its figures to mean anything."
CONTENTS: Final = "Contents"
VERDICT: Final = "Verdict"
TABLE: Final = "Comparison"
DOUBTS: Final = "Doubts"
CHARTS: Final = "Charts"
MEASURED_ON: Final = "How it was measured"
NOT_DONE: Final = "Not done"
SORT_HINT: Final = "The heading of a column sorts by it."
SORT_BY: Final = "Sort by {column}"
TABLE_OF: Final = "Table: {name}"
DOUBTS_HERE: Final = "Doubts that concern this figure"
LEFT_OUT: Final = "Not drawn"
MORE_PLOTS: Final = "{drawn} of {all} plots are drawn here; escala report --figures draws all."
NO_SCRIPT: Final = "The charts and the sorting need JavaScript; everything else is here without it."
VALUES: Final = "Values"
THEME: Final = "Light or dark"
FAILED: Final = "This chart could not be drawn: "
HOST: Final = "Machine"
HOST_OF: Final = "Machine {place} of {count}"
SOFTWARE: Final = "Software of the runs"
RECORDED: Final = "Recorded"
FROM_TO: Final = "{first} to {last}"
RUNS: Final = "runs"
EXPERIMENT: Final = "Experiment"
OVERRIDES: Final = "Keys that were overridden"
COMMAND: Final = "Command"
MADE_BY: Final = "Made by escala {version}."
FIELDS: Final = {
    "row": "row",
    "phase": "phase",
    "seconds": "seconds",
    "told": "in words",
    "value": "value",
    "low": "low",
    "high": "high",
    "ideal": "ideal",
    "epoch": "epoch",
    "score": "score",
    "device": "device",
    "peak": "peak",
    "part": "part",
    "watts": "watts",
    "begin": "from",
    "end": "to",
    "energy": "energy",
    "time": "time",
    "front": "on the front",
    "kind": "kind",
    "ways": "devices or seats",
    "speedup": "speed-up",
    "which": "which",
}
"""Fields of a chart's data, as the table of its values calls them; others are not shown there."""
