"""The closed list of reasons to distrust a figure, each with what to do about it."""

from __future__ import annotations

from typing import Literal

Doubt = Literal[
    "simulated",
    "limited memory",
    "unstable",
    "short blocks",
    "not warm",
    "few repeats",
    "other work",
    "other threads",
    "score below baseline",
    "score untested",
    "target missed",
    "within noise",
    "disturbed",
    "busy host",
    "shared process",
    "generated data",
    "other host",
    "shared device",
    "throttled",
    "short energy window",
    "other meter",
    "energy estimated",
    "energy disagrees",
]

ADVICE: dict[Doubt, str] = {
    "simulated": "several seats shared one device: right arithmetic, wrong speed; give each way a device",
    "limited memory": "devices were held to less memory than they have: what fits is that of smaller ones",
    "unstable": "repeats or blocks differ widely: close other programs, raise measure.cooldown_s or repeats",
    "short blocks": "a timed window was too short for the clock: raise train.steps or train.epochs",
    "not warm": "block times never settled during warm-up: the first figures may hold start-up work",
    "few repeats": "fewer than 5 repeats: the interval is the range seen; raise measure.repeats to 5",
    "other work": "batch, steps or samples differ from the baseline's: not ranked; compare equal work",
    "other threads": "the seats together had other CPU threads than the baseline: part of the ratio",
    "score below baseline": "it reached a worse score than the baseline: the speed cost accuracy",
    "score untested": "one run cannot tell whether it reaches the baseline's score: raise measure.repeats to 5",
    "target missed": "runs ended without the score of train.until and count as never: raise train.epochs or lower it",
    "within noise": "its interval overlaps the fastest one's: more repeats may tell them apart",
    "disturbed": "a seat stood still for a while during the run: its times are not used",
    "busy host": "other programs used the processor when the trial began: stop them and run it again",
    "shared process": "trials ran one after another in the launcher's processes: memory peaks are shared",
    "generated data": "the data were drawn by a generator, so scores do not speak of the real set",
    "other host": "recorded on another machine or software than the first record: shown apart, not averaged",
    "shared device": "another program used the device during the run, so its energy is in the figure: run alone",
    "throttled": "heat, power or a fault held a device back: cool it, or compare at the same limits",
    "short energy window": "too short for how often the meter is renewed: raise train.epochs or train.steps",
    "other meter": "its energy was read in another way than the baseline's: the two are not set against each other",
    "energy estimated": "its energy is a guess from rated power and load, not a measurement",
    "energy disagrees": "the counter and the integral of sampled power differ by more than 3 %: do not quote it",
}
