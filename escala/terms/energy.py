"""The names under which a record's readings tell of energy and power, and what of them is a trial's energy.

The names are public: add, never rename.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from escala.terms.record import Reading
from escala.terms.trial import Trial

ENERGY: Final = "energy"
"""Joules of one part of the machine, by phase."""
INTEGRAL: Final = "integrated energy"
"""Joules by phase as the integral of sampled watts, where the energy itself came from a counter."""
MEAN_POWER: Final = "mean power"
"""Watts over a phase."""
PEAK_POWER: Final = "peak power"
"""The highest sample of watts in any phase."""
IDLE_POWER: Final = "idle power"
"""Watts before the first trial, with nothing running."""
POWER_LIMIT: Final = "power limit"
"""Watts that the part may not exceed."""
UTILISATION: Final = "utilisation"
"""Share of the time in which the device worked, 0 to 1, over all phases."""
CLOCK: Final = "clock"
"""Mean clock of the device's processors over all phases, MHz."""
TEMPERATURE: Final = "temperature"
"""Highest temperature in any phase, degrees Celsius."""
THROTTLED: Final = "throttled"
"""Share of samples, 0 to 1, in which the device ran slower than asked for heat, power or a fault."""
OTHERS: Final = "other processes"
"""How many processes that were not the trial's used the device at some time of it."""
OTHER_LOAD: Final = "other load"
"""Share, 0 to 1, of the processor's busy time during the trial that was not the trial's own."""

AGREEMENT: Final = 0.03
"""How far a counter's joules and the integral of sampled power may lie apart, as a share of the integral."""

PHASES: Final = ("train", "validation", "test")
"""Phases that energy is told apart by; set-up and the pauses between phases belong to none."""


def used_parts(readings: Sequence[Reading], trial: Trial, phases: Collection[str] = PHASES) -> tuple[str, ...]:
    """Parts of the machine whose joules make up the trial's energy; none where that cannot be told.

    The devices of its seats must all be among them; of a trial on the processor, all packages and memory zones. A
    part counts where all phases that the trial had are known. Where devices do the work, the processor's joules are
    part of it too, but few machines let them be read: then the sum is of the devices alone, and says so.
    """
    found = dict[str, bool]()
    for reading in readings:
        if reading.what == ENERGY and reading.used and (reading.phase is None or reading.phase in phases):
            found[reading.where] = found.get(reading.where, True) and reading.value is not None
    known = tuple(where for where, complete in found.items() if complete)
    needed = {device for seat in trial.seats for device in seat.devices if device != "cpu"}
    return known if (needed or set(found)) <= set(known) else ()


def used_joules(
    readings: Sequence[Reading], trial: Trial, phases: Collection[str] = PHASES
) -> tuple[float | None, str | None]:
    """Joules that the trial's own parts took in these phases; or None and the reason."""
    parts = used_parts(readings, trial, phases)
    if not parts:
        return None, why_no_joules(readings)
    return (
        sum(
            reading.value or 0.0
            for reading in readings
            if reading.what == ENERGY and reading.where in parts and reading.phase in phases
        ),
        None,
    )


def why_no_joules(readings: Sequence[Reading]) -> str:
    """`not measured: nvml: no NVIDIA driver on this machine; rapl: permission denied on ...`."""
    told = [
        f"{reading.where}: {reading.reason}"
        for reading in readings
        if reading.what == ENERGY and reading.value is None and reading.used is not False
    ]
    return f"not measured: {'; '.join(dict.fromkeys(told)) or 'no power meter was asked for'}"
