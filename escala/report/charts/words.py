"""Every text of the charts, in one place; `say` tells it in the language that is spoken."""

from __future__ import annotations

from typing import Final

TITLE: Final = {
    "phases": "Time by phase",
    "speed-up": "Speed-up",
    "waterfall": "Where the speed-up came from",
    "efficiency": "Efficiency",
    "score": "Score over epochs",
    "score-time": "Score over time",
    "memory": "Peak memory by device",
    "power": "Power over time",
    "energy": "Energy",
    "edp": "Energy-delay product",
    "cost-energy": "Time against energy",
    "cost-score": "Time against score",
    "scaling": "Scaling over devices",
    "published": "Published beside measured",
}
ABOUT: Final = {
    "phases": "Medians over the runs of each row; set-up is no part of a phase.",
    "speed-up": (
        "How many times as fast as the baseline, with the interval over runs. A grey mark stands where as many "
        "devices or seats as the row has would bring it."
    ),
    "waterfall": (
        "The speed-up over the baseline before and after each factor, on a logarithmic axis: bars of equal length "
        "are equal factors. The grey bar is all of them together."
    ),
    "efficiency": (
        "Speed-up over the number of devices or seats, as a multiple of the baseline's, with the interval over runs. "
        "The grey line is the ideal: 1."
    ),
    "score": "Median over the runs after each epoch, in validation; the band is the interval over runs.",
    "score-time": (
        "The same scores over the median seconds of training and validation up to them; the band is the interval "
        "over runs."
    ),
    "memory": (
        "The highest peak of all runs, as measured. Of a row that ran out of memory, what it had reached. A grey "
        "mark stands where it was expected before the run."
    ),
    "power": (
        "One run of each row, the first that has a trace; the phases are shaded. Of many samples the lowest and the "
        "highest of each stretch are drawn."
    ),
    "energy": (
        "Joules of the parts of the machine that a row used, by phase, medians over runs; the line is the interval "
        "of the whole. With a target: joules up to it."
    ),
    "edp": (
        "Joules times seconds over all phases, with the interval over runs; less is better. With a target: up to it."
    ),
    "cost-energy": (
        "Less of both is better. Filled: no other row took less of one and no more of the other (the Pareto front). "
        "Rows that did other work or shared a device are hollow and never on it. Lines are the intervals over runs."
    ),
    "cost-score": (
        "Filled: no other row was as good in less time, or better in the same (the Pareto front). Rows that did "
        "other work or shared a device are hollow and never on it. Lines are the intervals over runs."
    ),
    "scaling": (
        "Speed-up over the row of the same kind with the fewest devices. The line is Amdahl's law with the serial "
        "share that fits best; the grey line is the ideal."
    ),
    "published": "Each figure that both have as a number, in the unit of its source.",
}
ABSENT: Final = {
    "phases": "No row has times.",
    "speed-up": "No row can be set against a baseline that was timed in the same place.",
    "waterfall": "No speed-up was taken apart (escala run EXPERIMENT --attribute).",
    "efficiency": "No row can be set against a baseline that was timed in the same place.",
    "score": "No row has a validation score after more than one epoch.",
    "score-time": "No row has a validation score and times after more than one epoch.",
    "memory": "No peak of memory was recorded.",
    "power": "No power trace was recorded.",
    "energy": "No row has energy.",
    "edp": "No row has both energy and times.",
    "cost-energy": "Fewer than two rows have both times and energy.",
    "cost-score": "Fewer than two rows have both times and a score.",
    "scaling": "No kind of row was timed on more than one number of devices.",
    "published": "The experiment names no published figures, or none that was measured here as a number.",
}
ENERGY_REASON: Final = "{absent} Energy was {reason}."

PHASE: Final = {"train": "train", "validation": "validation", "test": "test"}
PHASE_TITLE: Final = "phase"
ROW: Final = "row"
STRATEGY: Final = "strategy"
MEDIAN: Final = "median"
MEDIAN_SECONDS: Final = "seconds, medians of the runs"
SECONDS: Final = "seconds"
WATTS: Final = "watts"
PART: Final = "part"
FROM: Final = "from"
TO: Final = "to"
SPEEDUP: Final = "speed-up"
SPEEDUP_ALL: Final = "speed-up, all phases"
SPEEDUP_TRAINING: Final = "speed-up, training"
SPEEDUP_TO_SCORE: Final = "speed-up, to score"
IDEAL_MARK: Final = "{what} (grey: as many times as there are ways)"
IDEAL: Final = "ideal"
EFFICIENCY: Final = "efficiency"
EFFICIENCY_AXIS: Final = "efficiency, {what} (grey: ideal)"
ALL_PHASES: Final = "all phases"
TRAINING: Final = "training"
EPOCH: Final = "epoch"
EPOCH_SECONDS: Final = "seconds of training and validation"
SCORE: Final = "score"
IN_VALIDATION: Final = "{score} in validation"
IN_TEST: Final = "{score} in the test"
LOWER_IS_BETTER: Final = "{score} (lower is better)"
PANELS: Final = "{score} over {axis}"
GREY: Final = "{title} (grey: {row})"
DEVICE: Final = "device"
MEMORY: Final = "peak memory, {unit}"
PEAK: Final = "peak"
TOGETHER: Final = "all together"
OVER_BASELINE: Final = "times as fast as the baseline"
FACTOR: Final = "factor"
WATERFALL: Final = "waterfall"
EXPECTED: Final = "expected"
ENERGY: Final = "energy"
ENERGY_AXIS: Final = "energy, {unit}, medians of the runs"
ENERGY_TO_SCORE: Final = "energy to the target, {unit}"
EDP_AXIS: Final = "EDP, J s"
EDP_TO_SCORE: Final = "EDP to the target, J s"
EDP: Final = "EDP"
TIMES_BASELINE: Final = "{value}, {times} of the baseline's"
TIME: Final = "time"
SECONDS_ALL: Final = "seconds of all phases"
SECONDS_TRAINING: Final = "seconds of training"
SECONDS_TO_SCORE: Final = "seconds to the target"
ON_FRONT: Final = "on the Pareto front"
YES: Final = "yes"
NO: Final = "no"
DEVICES: Final = "devices or seats"
KIND: Final = "kind"
SERIAL: Final = "{kind}: serial share {share}"
NO_SERIAL: Final = {
    "shared cores": "{kind}: seats share one processor, so no serial share is fitted",
    "repeated count": "{kind}: several rows of one count, so no serial share is fitted",
    "slower": "{kind}: no serial share fits, since more devices are slower",
    "faster": "{kind}: no serial share fits, since more devices are faster than in proportion",
}
PUBLISHED: Final = "published"
MEASURED: Final = "measured"
WHICH: Final = "which"
ESTIMATED: Final = "{value} est."
