"""Watts and counters into joules, over the windows of a phase. Pure arithmetic on samples.

Both ways give joules as a function of time: a counter's by straight lines between its readings, watts' by the
trapezoid rule with straight lines between the samples. A phase's energy is the sum of its differences over windows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from escala.terms.errors import Unavailable

Windows = Sequence[tuple[float, float]]
"""Begin and end of each, seconds on the clock of the samples; they do not overlap."""
Floats = NDArray[np.float64]

_STILL_UPDATES = 20
_STILL_S = 2.0


def counted(seconds: Floats, joules: Floats, windows: Windows, update_s: float = 0.0) -> float:
    """Joules in the windows by a counter, `joules` at each of `seconds`, both of shape (samples,).

    Raises `Unavailable` where the samples do not reach around the windows, the counter ran backwards, or stood still
    for longer than it should between two renewals, `update_s` seconds apart.
    """
    _check_reach(seconds, windows)
    inside = around(seconds, windows)
    steps = np.diff(joules[inside])
    if (steps < 0).any():
        raise Unavailable("its counter ran backwards")
    still = _longest_still(seconds[inside], steps)
    longest = max(_STILL_UPDATES * update_s, _STILL_S)
    if still >= longest:
        raise Unavailable(f"its counter stood still for {still:.1f} s")
    return float(sum(np.interp(end, seconds, joules) - np.interp(begin, seconds, joules) for begin, end in windows))


def integrated(seconds: Floats, watts: Floats, windows: Windows) -> float:
    """Joules in the windows by the trapezoid rule over `watts` at `seconds`, both of shape (samples,).

    Raises `Unavailable` where the samples do not reach around the windows, or a sample is below 0.
    """
    _check_reach(seconds, windows)
    if (watts[around(seconds, windows)] < 0).any():
        raise Unavailable("it told a power below 0")
    return float(sum(_trapezoid(seconds, watts, begin, end) for begin, end in windows))


def mean_in(seconds: Floats, values: Floats, windows: Windows) -> float | None:
    """Time-weighted mean of sampled values over the windows; None where they have no length."""
    length = sum(end - begin for begin, end in windows)
    if length <= 0:
        return None
    return sum(_trapezoid(seconds, values, begin, end) for begin, end in windows) / length


def samples_in(seconds: Floats, windows: Windows) -> NDArray[np.bool_]:
    """Which samples fall into the windows, shape (samples,)."""
    found = np.zeros(len(seconds), dtype=bool)
    for begin, end in windows:
        found |= (seconds >= begin) & (seconds <= end)
    return found


def around(seconds: Floats, windows: Windows) -> slice:
    """From the last sample before the first window to the first one after the last."""
    first = max(0, int(np.searchsorted(seconds, windows[0][0], side="right")) - 1)
    last = int(np.searchsorted(seconds, windows[-1][1], side="left"))
    return slice(first, last + 1)


def _trapezoid(seconds: Floats, values: Floats, begin: float, end: float) -> float:
    between = seconds[(seconds > begin) & (seconds < end)]
    points = np.concatenate(([begin], between, [end]))
    heights = np.interp(points, seconds, values)
    return float(np.sum((heights[1:] + heights[:-1]) / 2 * np.diff(points)))


def _check_reach(seconds: Floats, windows: Windows) -> None:
    if not windows:
        raise Unavailable("the trial had no such phase")
    if len(seconds) < 2 or seconds[0] > windows[0][0] or seconds[-1] < windows[-1][1]:
        raise Unavailable("it was not read for the whole of the phase")


def _longest_still(seconds: Floats, steps: Floats) -> float:
    """The longest stretch of time over which a counter did not move."""
    moved = np.flatnonzero(steps > 0)
    edges = np.concatenate(([0], moved + 1, [len(seconds) - 1]))
    # A step of the counter came at some time between two samples: what lies between is no standstill.
    starts, ends = edges[:-1], np.maximum(edges[1:] - 1, edges[:-1])
    ends[-1] = len(seconds) - 1
    return float((seconds[ends] - seconds[starts]).max(initial=0.0))
