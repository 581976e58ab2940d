"""A campaign that goes on must find the data that its earlier trials saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from escala.plan.preflight import Preflight
from escala.terms.errors import EscalaError
from escala.terms.record import Record
from escala.terms.trial import Trial

_SHOWN = 12


def refuse_changed_data(recorded: Mapping[str, Record], todo: Sequence[Trial], before: Preflight) -> None:
    """Raises EscalaError DATA-HASH where a trial still to do would see other data than one that was recorded.

    Only of trials with the same workload and data: another case may use other data under the same name.
    """
    saw: list[tuple[Any, str]] = [
        (_work(record.trial), record.data.digest)
        for record in recorded.values()
        if record.outcome == "done" and record.data is not None and record.data.digest
    ]
    works = [_work(trial) for trial in todo if trial.unfit is None]
    for facts in before.facts:
        spec = facts.spec
        work = (spec.name, spec.options, facts.data, spec.validation, spec.limit)
        then = next((digest for other, digest in saw if other == work and digest != facts.use.digest), None)
        if then is not None and facts.use.digest and work in works:
            raise EscalaError(
                "DATA-HASH",
                facts.use.name,
                f"the data changed since this campaign's first trials: {then[:_SHOWN]} then, "
                f"{facts.use.digest[:_SHOWN]} now",
                expected="the same rows for every repeat",
                next_step="put the earlier data back, or use another --out folder",
            )


def _work(trial: Trial) -> tuple[Any, ...]:
    return (trial.workload, trial.options, trial.data, trial.validation, trial.limit)
