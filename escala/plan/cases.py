"""Some of an experiment's cases instead of all."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from escala.plan.read import Loaded
from escala.plan.words import shown
from escala.terms.errors import EscalaError
from escala.terms.experiment import CaseSpec, Experiment
from escala.terms.words import did_you_mean, nearest


def only(loaded: Loaded, names: Sequence[str]) -> Loaded:
    """The experiment with the named cases alone, and with the figures published for them; all where none is named.

    A name is a case's own, or a part of it that no other case has. Raises CFG-CASE.
    """
    if not names:
        return loaded
    kept = [_found(name, loaded.experiment) for name in names]
    cases = tuple(case for case in loaded.experiment.case if case in kept)
    known = {case.name for case in cases}
    published = tuple(one for one in loaded.experiment.published if one.case is None or one.case in known)
    return replace(loaded, experiment=replace(loaded.experiment, case=cases, published=published))


def _found(name: str, experiment: Experiment) -> CaseSpec:
    cases = experiment.case
    exact = [case for case in cases if case.name == name]
    parts = exact or [case for case in cases if name.lower() in case.name.lower()]
    if len(parts) == 1:
        return parts[0]
    listed = ", ".join(shown(case.name) for case in parts or cases)
    if parts:
        raise EscalaError(
            "CFG-CASE", "--case", f"{shown(name)} is part of several names", expected=f"one of {listed}"
        )
    raise EscalaError(
        "CFG-CASE",
        "--case",
        f"there is no case {shown(name)}" if cases else "this experiment has no cases",
        expected=f"one of {listed}" if cases else "",
        next_step=did_you_mean(nearest(name, [case.name for case in cases])),
    )
