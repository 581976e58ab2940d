"""The energy of a row: its runs put together, and set against the baseline's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import inf, isfinite
from typing import Any

from escala.analyse.bootstrap import interval, interval_of, ratio, scaled
from escala.analyse.energy import Account, account, not_measured
from escala.analyse.group import Group, samples_of
from escala.analyse.language import say
from escala.analyse.row import Interval, Summary
from escala.terms.energy import PHASES
from escala.terms.record import Record, ToScore

JOULES_PER_KWH = 3.6e6
ONE = Interval(1.0, 1.0, 1.0, (1.0,))

_Run = tuple[Record, Account]


def measured(group: Group, grid_g_per_kwh: float | None = None) -> dict[str, Any]:
    """The fields of a row that tell of its energy. Runs that were read in another way than most are left out."""
    only = sum(record.trial.role == "energy" for record in group.records)
    runs = [(record, account(record)) for record in group.metered]
    known = [run for run in runs if run[1].reason is None]
    accounts = [found for _, found in runs]
    fields: dict[str, Any] = {
        "energy_only": only,
        "mean_w": _by_name(accounts, lambda found: found.mean_w),
        "peak_w": _by_name(accounts, lambda found: found.peak_w),
        "idle_parts": tuple(dict.fromkeys(part for found in accounts for part in found.idle_parts)),
    }
    if not known:
        return fields | {"energy_reason": _why_none(group, accounts)}
    kept = [run for run in known if _method(run) == Counter(map(_method, known)).most_common(1)[0][0]]
    fields |= {"energy_runs": len(kept), "energy_left_out": len(known) - len(kept)}
    return fields | _figures(kept, grid_g_per_kwh) | _to_score(group, kept)


def against(row: Summary, baseline: Summary) -> dict[str, Interval | None]:
    """The row's ratios to the baseline's energy and EDP; None where the two cannot be set against each other."""
    # With a target every run is as long as it happened to take.
    comparable = row.target is None and baseline.target is None and same_meter(row, baseline)
    return {
        name: _ratio(getattr(row, of), getattr(baseline, of), same=row is baseline) if comparable else None
        for name, of in (("energy_ratio", "energy_j"), ("edp_ratio", "edp"), ("edp_host_ratio", "edp_host"))
    }


def same_meter(row: Summary, other: Summary) -> bool:
    """Whether both sums are of the same kinds of parts, read in the same ways.

    The devices are those that each row used; the rest of the machine must be in both sums or in neither.
    """
    if not row.energy_how or not other.energy_how:
        return False
    return _machine(row) == _machine(other) and set(row.energy_how.values()) == set(other.energy_how.values())


def _machine(row: Summary) -> dict[str, str]:
    """What is in the sum beside devices, which have a number after a colon."""
    return {part: how for part, how in row.energy_how.items() if ":" not in part}


def _ratio(own: Interval | None, other: Interval | None, *, same: bool) -> Interval | None:
    if own is None or other is None:
        return None
    return ONE if same else ratio(own.values, other.values)


def _method(run: _Run) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(run[1].how.items()))


def _why_none(group: Group, accounts: Sequence[Account]) -> str | None:
    """The first reason: runs of one trial on one machine rarely have several."""
    if not group.done:
        return None
    reasons = dict.fromkeys(found.reason for found in accounts if found.reason is not None)
    return next(iter(reasons), not_measured(say("no run that reads energy came to its end undisturbed")))


def _figures(kept: Sequence[_Run], grid_g_per_kwh: float | None) -> dict[str, Any]:
    accounts = [found for _, found in kept]
    energy_j = interval_of(found.energy_j for found in accounts)
    how = accounts[0].how
    return {
        "energy_how": how,
        "energy_parts": tuple(how),
        "energy_j": energy_j,
        "energy_host_j": _of_all([found.host_j for found in accounts]),
        "energy_above_idle_j": _of_all([found.above_idle_j for found in accounts]),
        "energy_phase_j": _by_name(accounts, lambda found: found.phase_j, PHASES),
        "idle_share": _of_all([_idle_share(found) for found in accounts], least=0.0),
        "joules_per_sample": interval_of(_joules_per_sample(run) for run in kept),
        "samples_per_joule": interval_of(_inverse(_joules_per_sample(run)) for run in kept),
        "edp": interval_of(_edp(record, found.energy_j) for record, found in kept),
        "edp_host": _of_all([_edp(record, found.host_j) for record, found in kept]),
        "co2_g": scaled(energy_j, grid_g_per_kwh / JOULES_PER_KWH) if energy_j and grid_g_per_kwh else None,
        "counter_over_integral": interval_of(found.counter_over_integral for found in accounts),
    }


def _of_all(values: Sequence[float | None], least: float | None = None) -> Interval | None:
    """The interval of what every run has, above 0 or at least `least`: a figure of some runs alone is another one."""
    known = [value for value in values if value is not None and isfinite(value)]
    sound = [value for value in known if (value > 0 if least is None else value >= least)]
    return interval(sound) if len(sound) == len(values) > 0 else None


def _by_name(
    accounts: Iterable[Account], of: Callable[[Account], dict[str, float]], names: Sequence[str] | None = None
) -> dict[str, Interval]:
    found = [of(one) for one in accounts]
    names = names if names is not None else list(dict.fromkeys(name for one in found for name in one))
    intervals = {name: interval_of(one.get(name) for one in found) for name in names}
    return {name: one for name, one in intervals.items() if one is not None}


def _idle_share(found: Account) -> float | None:
    return None if found.host_j is None or found.idle_j is None else found.idle_j / found.host_j


def _joules_per_sample(run: _Run) -> float | None:
    record, found = run
    joules, samples = found.phase_j.get("train"), samples_of(record)
    return joules / samples if joules and samples else None


def _inverse(value: float | None) -> float | None:
    return 1 / value if value else None


def _edp(record: Record, joules: float | None) -> float | None:
    return None if joules is None or record.phases is None else joules * record.phases.total_s


def _to_score(group: Group, kept: Sequence[_Run]) -> dict[str, Any]:
    """Joules up to the target. A run that ended without it is known only to need more: it counts as infinite."""
    found = [(one, record.id) for record in group.records if (one := _aim(record)) is not None]
    if not found:
        return {}
    known = {record.id for record, _ in kept}
    pairs = [_price(one) if one.reached else (inf, inf) for one, of in found if not one.reached or of in known]
    joules, edps = ([pair[place] for pair in pairs if pair is not None] for place in (0, 1))
    return {
        "to_score_energy_j": interval(joules, never=True) if joules else None,
        "to_score_edp": interval(edps, never=True) if edps else None,
    }


def _aim(record: Record) -> ToScore | None:
    """What the run tells of its target, if its energy counts."""
    counts = record.outcome in ("done", "diverged") and record.trial.metered
    return record.to_score if counts and "disturbed" not in record.doubts else None


def _price(found: ToScore) -> tuple[float, float] | None:
    """Joules, and joules times seconds, up to the target."""
    joules, seconds = found.energy_j, found.total_s
    if joules is None or not isfinite(joules) or joules <= 0 or not isfinite(seconds) or seconds <= 0:
        return None
    return joules, joules * seconds
